package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAProbeOfTheKernelLeavesNothing(t *testing.T) {
	newNode(t, "veth")
	must(t, probeKernel())
	tables, err := guardTables()
	must(t, err)
	chains, err := dump(0, unix.NFT_MSG_GETCHAIN, nil)
	must(t, err)
	if len(tables)+len(chains) != 0 {
		t.Errorf("%v and %d chains are left", tables, len(chains))
	}
}

func TestARefusalOfTheKernelIsNotedUntilAProbeSucceeds(t *testing.T) {
	ports := guards{folder: t.TempDir()}
	path := filepath.Join(ports.folder, refusalFile)
	if err := ports.noteKernel(explain(syscall.EAFNOSUPPORT)); !errors.Is(err, syscall.EAFNOSUPPORT) {
		t.Errorf("the refusal is not returned: %v", err)
	}
	text, err := os.ReadFile(path)
	must(t, err)
	if !strings.Contains(string(text), "CONFIG_NF_TABLES_NETDEV") {
		t.Errorf("%q does not say what the kernel lacks", text)
	}
	must(t, ports.noteKernel(nil))
	must(t, ports.noteKernel(nil))
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refusal stays: %v", err)
	}
}
