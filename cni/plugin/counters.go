package main

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The agent, which has no capability, reads the counters of all guards in a file. `holdfast count-drops` writes it.
const (
	countersFile = "counters.json"
	// Rounds between two searches for rules whose interface is gone.
	collectEvery = 6
	// Attributes of a counter.
	counterPackets = 2
	rulesLost      = "another program has removed its rules, as `nft flush ruleset` does: migrate the VM, or recreate the pod"
)

// A test shortens it.
var countEvery = 10 * time.Second

// countDrops writes the counters again and again. It returns if the kernel cannot guard, or they cannot be read, and is started again.
func countDrops(folder string) error {
	ports := guards{folder: folder, isConfined: true}
	if err := ports.noteKernel(probeKernel()); err != nil {
		return err
	}
	var missing map[string]note
	for round := 0; ; round++ {
		counted, err := readCounters()
		if err == nil {
			err = ports.writeCounters(counted)
		}
		if err != nil {
			return err
		}
		if round%collectEvery == 0 {
			if err := ports.collect(""); err != nil {
				os.Stderr.WriteString("holdfast: cannot remove the rules of interfaces that are gone: " + err.Error() + "\n")
			}
			if missing, err = ports.noteLost(missing); err != nil {
				os.Stderr.WriteString("holdfast: cannot search for ports that have lost their rules: " + err.Error() + "\n")
			}
		}
		time.Sleep(countEvery)
	}
}

// readCounters returns the counters that are not zero, by table and name. One dump has those of all tables.
func readCounters() (map[string]map[string]uint64, error) {
	answers, err := dump(0, unix.NFT_MSG_GETOBJ, nil)
	if err != nil {
		return nil, explain(err)
	}
	counted := map[string]map[string]uint64{}
	for _, answer := range answers {
		described, err := parseContent(answer.body)
		counter, counterErr := parseAttributes(described[unix.NFTA_OBJ_DATA])
		if err = errors.Join(err, counterErr); err != nil {
			return nil, err
		}
		table, name := unix.ByteSliceToString(described[unix.NFTA_OBJ_TABLE]), unix.ByteSliceToString(described[unix.NFTA_OBJ_NAME])
		packets := counter[counterPackets]
		if len(packets) != 8 || binary.BigEndian.Uint64(packets) == 0 || !strings.HasPrefix(table, tablePrefix) {
			continue
		}
		if counted[table] == nil {
			counted[table] = map[string]uint64{}
		}
		counted[table][name] = binary.BigEndian.Uint64(packets)
	}
	return counted, nil
}

func (g guards) writeCounters(counted map[string]map[string]uint64) error {
	return replaceFile(g.folder, countersFile, encode(counted))
}

// noteLost tells the agent of ports that have lost their table. An ADD writes the note before the table, so the note must be the same
// in two searches. It takes the notes without a table from the search before, and returns those of this one.
func (g guards) noteLost(before map[string]note) (map[string]note, error) {
	names, err := g.noteNames()
	tables, tablesErr := guardTables()
	if err = errors.Join(err, tablesErr); err != nil {
		return nil, err
	}
	missing := map[string]note{}
	for _, name := range names {
		noted, readErr := g.read(name)
		if readErr != nil || noted.Index == 0 || noted.Failure != "" || slices.Contains(tables, name) || isAbsent(noted.Index) {
			continue
		}
		missing[name] = noted
		if g.isCurrent(name, before[name]) {
			err = errors.Join(err, g.noteFailure(name, noted, rulesLost))
		}
	}
	return missing, err
}

// noteFailure says in a note why its port has no rules, unless an ADD has written another note meanwhile.
func (g guards) noteFailure(name string, noted note, failure string) error {
	return g.locked(func() error {
		if !g.isCurrent(name, noted) {
			return nil
		}
		noted.Failure = failure
		return replaceFile(g.folder, name, encode(noted))
	})
}

// isGone reports whether the port of a note no longer exists. One without rules on the host is gone with its network namespace.
func (n note) isGone() bool {
	if n.Index == 0 {
		_, err := os.Stat(n.Netns)
		return errors.Is(err, os.ErrNotExist)
	}
	return isAbsent(n.Index)
}
