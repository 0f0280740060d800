#!/usr/bin/env bash
# expect: ask
# Checks a project before the hand-over.
set -u
project=acme-old
gcloud config set project "$project"
gcloud compute instances list
gcloud projects delete "$project" --quiet
gcloud auth list
