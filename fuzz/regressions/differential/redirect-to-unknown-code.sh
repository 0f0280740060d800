sh -c "sh -c '('\''l'\'')
pa k>"${a}" l'"
