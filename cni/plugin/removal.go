package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Tables that one transaction deletes: a few KiB.
	removedAtOnce = 100
	// Searches for tables. Further ones are found only while pods start.
	removalRounds = 10
	// After this time the writer of a temporary file was killed.
	temporaryMaxAge = 10 * time.Minute
)

// removeAll removes the rules of all ports on this node, and the notes about them. Those inside pods end with the pods.
func (g guards) removeAll() error {
	for range removalRounds {
		names, err := guardTables()
		if err != nil {
			return explain(err)
		}
		if len(names) == 0 {
			return removeFile(filepath.Join(g.folder, countersFile))
		}
		onHost := map[string]note{}
		for _, name := range names {
			noted, _ := g.read(name)
			onHost[name] = note{text: noted.text}
		}
		if err := g.remove(onHost); err != nil {
			return err
		}
	}
	return fmt.Errorf("interfaces get new guards meanwhile: end the agent of this node, and call this again (%d attempts)", removalRounds)
}

// collect deletes the rules of ports that no longer exist. A port whose interface is removed after its DEL keeps them until then.
// The table is that of a port whose DEL this is; empty: of none.
func (g guards) collect(ended string) error {
	names, err := g.noteNames()
	gone := map[string]note{}
	for _, name := range names {
		noted, readErr := g.read(name)
		hasNothing := noted.Index == 0 && noted.Failure != ""
		switch {
		case errors.Is(readErr, os.ErrNotExist): // a DEL was faster
		case readErr != nil && name != ended:
			err = errors.Join(err, fmt.Errorf("note %s: %w", name, readErr)) // its port may exist
		case readErr != nil || name == ended && hasNothing || !(g.isConfined && noted.Index == 0) && noted.isGone():
			gone[name] = noted
		}
	}
	return errors.Join(err, g.remove(gone), g.removeAbandoned())
}

// replace removes the rules of an earlier interface that had the name of one without a guard.
func (g guards) replace(name string) error {
	noted, err := g.read(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return g.remove(map[string]note{name: noted})
}

// remove deletes the rules of ports, and their notes, unless an ADD has written another note meanwhile. One transaction deletes many
// tables, because the kernel makes all others wait for a grace period after it.
func (g guards) remove(ports map[string]note) error {
	if len(ports) == 0 {
		return nil
	}
	return g.locked(func() (err error) {
		names := map[string][]string{} // by the network namespace of the rules
		for name, noted := range ports {
			if g.isCurrent(name, noted) {
				names[noted.home()] = append(names[noted.home()], name)
			}
		}
		for home, all := range names {
			for some := range slices.Chunk(all, removedAtOnce) {
				err = errors.Join(err, g.removeTables(home, some, ports))
			}
		}
		return err
	})
}

func (g guards) removeTables(home string, names []string, ports map[string]note) (err error) {
	var deletions []message
	for _, name := range names {
		deletions = append(deletions, deletion(name)...)
	}
	failure := inNetns(home, func(netns int) error { return explain(transact(netns, deletions)) })
	for _, name := range names {
		if failure != nil && ports[name].Failure == "" {
			return failure
		}
		// where rules could not be applied, they often cannot be removed either
		err = errors.Join(err, removeFile(filepath.Join(g.folder, name)))
	}
	return err
}

// removeAbandoned removes files that processes had not written to the end when they were killed.
func (g guards) removeAbandoned() error {
	paths, err := filepath.Glob(filepath.Join(g.folder, temporaryPrefix+"*"))
	for _, path := range paths {
		if file, statErr := os.Stat(path); statErr == nil && time.Since(file.ModTime()) > temporaryMaxAge {
			err = errors.Join(err, removeFile(path))
		}
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
