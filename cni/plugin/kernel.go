package main

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// refusalFile has the reason why the kernel of a node cannot guard. The agent reads it (cni/agent/guard/guard-notes.ts).
const refusalFile = "kernel-refusal"

// probeKernel creates a chain of the family netdev and deletes it in the same transaction, so that no frame ever passes it.
func probeKernel() error {
	name := tablePrefix + "probe"
	chain := attributes{}.text(unix.NFTA_CHAIN_TABLE, name).text(unix.NFTA_CHAIN_NAME, "probe")
	chain = hooked(chain, port{device: "lo", hook: unix.NF_NETDEV_INGRESS}, "")
	deleted := deletion(name)
	return explain(transact(0, []message{deleted[0], tableMessage(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, chain), deleted[1]}))
}

// noteKernel writes what a probe has found, and returns it.
func (g guards) noteKernel(refusal error) error {
	if refusal != nil {
		return errors.Join(refusal, replaceFile(g.folder, refusalFile, []byte(refusal.Error())))
	}
	return removeFile(filepath.Join(g.folder, refusalFile))
}
