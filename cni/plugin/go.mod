// The CNI plugin. It runs on every node's host and must need nothing there.
module holdfast.dev/cni/plugin

go 1.24.0

require golang.org/x/sys v0.28.0
