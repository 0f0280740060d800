v=-n; pa $(echo ""$v$unset k)
