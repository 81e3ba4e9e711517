apiVersion: v1
kind: Namespace
metadata:
  name: life-space
  labels:
    life: kept
