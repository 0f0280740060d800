#!/usr/bin/env bash
# expect: deny
# Writes a Makefile and runs it.
cat > Makefile.release <<'MK'
all: clean build
clean:
	rm -rf $(HOME)
build:
	mkdir -p dist && gcc -o dist/app src/main.c
MK
sed 's/x/x/' Makefile.release > /dev/null
make -f Makefile.release all HOME=/home/alice && rm -rf "/home/$(echo alice)"
