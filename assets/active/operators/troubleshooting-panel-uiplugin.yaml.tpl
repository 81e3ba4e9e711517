# The troubleshooting panel of the console, which follows a problem from one kind of signal to the next.
apiVersion: observability.openshift.io/v1alpha1
kind: UIPlugin
metadata:
  name: troubleshooting-panel
spec:
  type: TroubleshootingPanel
