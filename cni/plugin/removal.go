package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// Tables that one transaction deletes: a few KiB.
	removedAtOnce = 100
	// Searches for tables. Further ones are found only while pods start.
	removalRounds = 10
)

// removeAll removes the rules of all ports on this node, and the notes about them. Those inside pods end with the pods.
func (g guards) removeAll() error {
	for range removalRounds {
		names, err := guardTables()
		if err != nil {
			return explain(err)
		}
		if len(names) == 0 {
			// the folder stays if it has notes of other ports
			os.Remove(filepath.Join(g.folder, countersFile))
			os.Remove(g.folder)
			return nil
		}
		for len(names) > 0 {
			count := min(len(names), removedAtOnce)
			if err := g.removeTables(names[:count]); err != nil {
				return err
			}
			names = names[count:]
		}
	}
	return fmt.Errorf("interfaces get new guards meanwhile: end the agent of this node, and call this again (%d attempts)", removalRounds)
}

func (g guards) removeTables(names []string) (err error) {
	var deletions []message
	for _, name := range names {
		deletions = append(deletions, deletion(name)...)
	}
	if err := transact(0, deletions); err != nil {
		return explain(err)
	}
	for _, name := range names {
		err = errors.Join(err, removeFile(filepath.Join(g.folder, name)))
	}
	return err
}

// guardTables returns the names of the tables in this network namespace.
func guardTables() (names []string, err error) {
	tables, err := dump(0, unix.NFT_MSG_GETTABLE, nil)
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		described, err := parseContent(table.body)
		if err != nil {
			return nil, err
		}
		if name := unix.ByteSliceToString(described[unix.NFTA_TABLE_NAME]); strings.HasPrefix(name, tablePrefix) {
			names = append(names, name)
		}
	}
	return names, nil
}
