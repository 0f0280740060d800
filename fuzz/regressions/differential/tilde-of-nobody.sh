pa ~.6 ~3 ~-x; bash -c "pb ~$unset"
