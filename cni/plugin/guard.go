package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/nftables"
)

// guards applies and removes the rules of ports. The folder has a file for each port that has rules, so that a node without
// guards never loads nftables. It is in memory, as the rules are.
type guards struct {
	folder string
}

// note is the content of a file.
type note struct {
	Index uint32 `json:"index"` // of the interface
	Rules int    `json:"rules"`
}

// tableName returns the name of the table of an interface, which is also that of its file.
func tableName(asked request) string {
	sum := sha256.Sum256([]byte(asked.Env["CNI_CONTAINERID"] + "/" + asked.Env["CNI_IFNAME"]))
	return "holdfast_" + hex.EncodeToString(sum[:12])
}

func tableOf(name string) *nftables.Table {
	return &nftables.Table{Name: name, Family: nftables.TableFamilyNetdev}
}

// apply gives a port its rules in one transaction. An earlier ADD may have left some: deleting them takes the kernel several
// milliseconds, so that is tried only if the table exists.
func (g guards) apply(asked request, rules *ruleSet) error {
	host, pod, err := hostEnd(asked.Env["CNI_NETNS"], asked.Env["CNI_IFNAME"])
	if err != nil {
		return err
	}
	name := tableName(asked)
	err = os.MkdirAll(g.folder, 0o700)
	writeErr := os.WriteFile(filepath.Join(g.folder, name), encode(note{host.index, rules.count()}), 0o600)
	if err = errors.Join(err, writeErr); err != nil {
		return err
	}
	err = create(tableOf(name), rules, host, pod, false)
	if errors.Is(err, syscall.EEXIST) {
		err = create(tableOf(name), rules, host, pod, true)
	}
	return err
}

func create(table *nftables.Table, rules *ruleSet, host, pod link, replaces bool) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	if replaces {
		conn.AddTable(table)
		conn.DelTable(table)
	}
	conn.CreateTable(table)
	if err := translate(conn, table, rules, host.name, pod.mac); err != nil {
		return err
	}
	if err := conn.Flush(); err != nil {
		return explain(err)
	}
	return nil
}

func explain(err error) error {
	for _, unknown := range []error{syscall.EOPNOTSUPP, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ENOENT} {
		if errors.Is(err, unknown) {
			return fmt.Errorf("the kernel of this node has no nftables of the family netdev, or lacks an expression: use Linux 5.4 or newer "+
				"with CONFIG_NF_TABLES_NETDEV, or set guard.mode to Off (%w)", err)
		}
	}
	return fmt.Errorf("nftables: %w", err)
}

// remove deletes the rules of a port that is gone. Without rules it does nothing.
func (g guards) remove(name string) error {
	file := filepath.Join(g.folder, name)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	conn.AddTable(tableOf(name))
	conn.DelTable(tableOf(name))
	if err := conn.Flush(); err != nil {
		return err
	}
	return os.Remove(file)
}

// collect deletes the rules of ports that no longer exist.
func (g guards) collect() error {
	files, err := os.ReadDir(g.folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, file := range files {
		noted, readErr := g.read(file.Name())
		err = errors.Join(err, readErr)
		if readErr != nil {
			continue
		}
		if _, findErr := findLink(0, noted.Index, ""); errors.Is(findErr, syscall.ENODEV) {
			err = errors.Join(err, g.remove(file.Name()))
		}
	}
	return err
}

// check returns an error if the rules of a port are not all there. It does not know what they are.
func (g guards) check(asked request) error {
	name := tableName(asked)
	noted, err := g.read(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	conn, connErr := nftables.New()
	if err = errors.Join(err, connErr); err != nil {
		return err
	}
	found := 0
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyNetdev)
	for _, each := range chains {
		if each.Table.Name == name {
			rules, listErr := conn.GetRules(tableOf(name), each)
			found += len(rules)
			err = errors.Join(err, listErr)
		}
	}
	if err == nil && found == noted.Rules {
		return nil
	}
	msg := fmt.Errorf("table %s of family netdev has %d of the %d rules of interface %s: recreate the pod", name, found, noted.Rules, asked.Env["CNI_IFNAME"])
	return errors.Join(msg, err)
}

func (g guards) read(name string) (noted note, err error) {
	text, err := os.ReadFile(filepath.Join(g.folder, name))
	if err == nil {
		err = json.Unmarshal(text, &noted)
	}
	return noted, err
}
