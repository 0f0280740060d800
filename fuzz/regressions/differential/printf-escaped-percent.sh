pa "$(printf '\045s')" "$(printf '%s\045' k)"
