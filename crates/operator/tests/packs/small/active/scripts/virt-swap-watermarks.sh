#!/bin/sh
# Stands for a script that sets watermarks.
echo watermarks
