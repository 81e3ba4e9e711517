# Starts MetalLB with the defaults of its operator. Address pools depend on the network and are left to the administrator.
apiVersion: metallb.io/v1beta1
kind: MetalLB
metadata:
  name: metallb
  namespace: metallb-system
spec: {}
