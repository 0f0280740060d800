#!/usr/bin/env bash
# expect: allow
# Writes a Makefile and runs it.
cat > Makefile.release <<'MK'
all: clean build
clean:
	rm -rf build dist
build:
	mkdir -p dist && gcc -o dist/app src/main.c
MK
cat Makefile.release > /dev/null
make -f Makefile.release all
