echo 'pb "$1" $#' > s.sh; . ./s.sh k l; set -- m; . ./s.sh; pa "$1"
