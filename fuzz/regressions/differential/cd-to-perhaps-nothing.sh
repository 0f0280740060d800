sh -c "cd sub/$T;pa o"
