trap 'pa '"${t-{k,l}}" EXIT; eval "pb ${t-{k,l}}"; sh <<<"pc ${t-{k,l}}"
