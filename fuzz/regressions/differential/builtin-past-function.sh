cd(){ p;}
builtin cd sub;pb; f(){ pc;}; command eval f
