pb $(( 1 + $(case k in k) pa;; esac; echo 1) ))
