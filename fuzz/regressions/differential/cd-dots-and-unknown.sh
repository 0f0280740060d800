(cd sub/..$unset && pa)
