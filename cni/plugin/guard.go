package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/nftables"
)

// guards applies and removes the rules of ports. The folder has a file for each port that has rules, so that a node without
// guards never loads nftables. It is in memory, as the rules are.
type guards struct {
	folder string
}

// note is the content of a file. The agent reads it, too (cni/agent/guard/guard-notes.ts).
type note struct {
	Index uint32 `json:"index"` // of the interface; 0 if the rules could not be applied
	Rules int    `json:"rules"`
	Netns string `json:"netns"`
	Mode  string `json:"mode"`
	// Why an observed port has no rules.
	Failure string `json:"failure,omitempty"`
	// Whose port it is, as the agent wrote it.
	Subject json.RawMessage `json:"subject,omitempty"`
}

const tablePrefix = "holdfast_"

// tableName returns the name of the table of an interface, which is also that of its file.
func tableName(asked request) string {
	sum := sha256.Sum256([]byte(asked.Env["CNI_CONTAINERID"] + "/" + asked.Env["CNI_IFNAME"]))
	return tablePrefix + hex.EncodeToString(sum[:12])
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
	if err := g.write(asked, rules, note{Index: host.index, Rules: rules.count()}); err != nil {
		return err
	}
	err = create(tableOf(name), rules, host, pod, false)
	if errors.Is(err, syscall.EEXIST) {
		err = create(tableOf(name), rules, host, pod, true)
	}
	return err
}

// write notes a port before it gets rules, so that they are always found again.
func (g guards) write(asked request, rules *ruleSet, noted note) error {
	noted.Netns, noted.Mode, noted.Subject = asked.Env["CNI_NETNS"], rules.Mode, rules.Subject
	err := os.MkdirAll(g.folder, 0o700)
	return errors.Join(err, os.WriteFile(filepath.Join(g.folder, tableName(asked)), encode(noted), 0o600))
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
	noted, err := g.read(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// where rules could not be applied, they often cannot be removed either
	if err := dropTable(name); err != nil && noted.Failure == "" {
		return err
	}
	if err := os.Remove(filepath.Join(g.folder, name)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func dropTable(name string) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	conn.AddTable(tableOf(name))
	conn.DelTable(tableOf(name))
	return conn.Flush()
}

// collect deletes the rules of ports that no longer exist.
func (g guards) collect() error {
	files, err := os.ReadDir(g.folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), tablePrefix) {
			continue
		}
		noted, readErr := g.read(file.Name())
		if errors.Is(readErr, os.ErrNotExist) {
			continue // a DEL was faster
		}
		err = errors.Join(err, readErr)
		if readErr == nil && noted.isGone() {
			err = errors.Join(err, g.remove(file.Name()))
		}
	}
	return err
}

// check returns an error if the rules of a port are not all there. It does not know what they are.
func (g guards) check(asked request) error {
	name := tableName(asked)
	noted, err := g.read(name)
	if errors.Is(err, os.ErrNotExist) || noted.Failure != "" {
		return nil // the agent reports the failure
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
