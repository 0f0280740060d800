(: $(echo *t|xargs -n1 pa)); echo *.txt | xargs -n 2 pb
