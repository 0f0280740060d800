printf 'pc\\\n' | xargs pa k
