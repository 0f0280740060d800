trap 'cd sub' DEBUG; pb; trap - DEBUG
