#!/bin/sh
# Stands for a script that sets latencies.
echo latencies
