// The CNI plugin. Standard library only: what runs on every node's host must need nothing there.
module holdfast.dev/cni/plugin

go 1.24.0
