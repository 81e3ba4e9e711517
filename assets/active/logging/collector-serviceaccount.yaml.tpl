# The account of the log collector. What it may read is granted by the bindings beside it.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: collector
  namespace: openshift-logging
