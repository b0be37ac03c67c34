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
	// The network namespaces of pods cannot be seen: this process runs in a container.
	isConfined bool
}

// note is the content of a file. The agent reads it, too (cni/agent/guard/guard-notes.ts).
type note struct {
	Index uint32 `json:"index"` // of the interface; 0 if there are no rules, or those of a macvlan interface in the pod
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
	netns, err := os.Open(asked.Env["CNI_NETNS"])
	if err != nil {
		return fmt.Errorf("cannot open CNI_NETNS: %w", err)
	}
	defer netns.Close()
	found, err := findPort(netns, asked.Env["CNI_IFNAME"], rules.IsGuest)
	if err != nil {
		return err
	}
	if err := g.write(asked, rules, note{Index: found.index, Rules: rules.count()}); err != nil {
		return err
	}
	table := tableOf(tableName(asked))
	err = create(table, rules, found, false)
	if errors.Is(err, syscall.EEXIST) {
		err = create(table, rules, found, true)
	}
	return err
}

// write notes a port before it gets rules, so that they are always found again.
func (g guards) write(asked request, rules *ruleSet, noted note) error {
	noted.Netns, noted.Mode, noted.Subject = asked.Env["CNI_NETNS"], rules.Mode, rules.Subject
	err := os.MkdirAll(g.folder, 0o700)
	return errors.Join(err, os.WriteFile(filepath.Join(g.folder, tableName(asked)), encode(noted), 0o600))
}

func create(table *nftables.Table, rules *ruleSet, at port, replaces bool) error {
	conn, err := nftables.New(nftables.WithNetNSFd(at.netns))
	if err != nil {
		return err
	}
	if replaces {
		conn.AddTable(table)
		conn.DelTable(table)
	}
	conn.CreateTable(table)
	if err := translate(conn, table, rules, at); err != nil {
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
			return fmt.Errorf("the kernel of this node has no nftables of the family netdev, or lacks an expression: use Linux 5.4 or newer, "+
				"and for macvlan 5.16 or newer, with CONFIG_NF_TABLES_NETDEV, or set guard.mode to Off (%w)", err)
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
	if err := noted.dropTable(name); err != nil && noted.Failure == "" {
		return err
	}
	if err := os.Remove(filepath.Join(g.folder, name)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (n note) dropTable(name string) error {
	conn, closeNetns, err := n.connect()
	if conn == nil {
		return err
	}
	defer closeNetns()
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
		if readErr == nil && !(g.isConfined && noted.Index == 0) && noted.isGone() {
			err = errors.Join(err, g.remove(file.Name()))
		}
	}
	return err
}

// removeAll removes the rules of all ports on this node, and the notes about them. Those inside pods end with the pods.
func (g guards) removeAll() error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyNetdev)
	if err != nil {
		return explain(err)
	}
	for _, table := range tables {
		if strings.HasPrefix(table.Name, tablePrefix) {
			conn.DelTable(table)
		}
	}
	if err := conn.Flush(); err != nil {
		return explain(err)
	}
	return os.RemoveAll(g.folder)
}

// check returns an error if the rules of a port are not all there. It does not know what they are.
func (g guards) check(asked request) error {
	name := tableName(asked)
	noted, err := g.read(name)
	if errors.Is(err, os.ErrNotExist) || noted.Failure != "" {
		return nil // the agent reports the failure
	}
	conn, closeNetns, connErr := noted.connect()
	if err = errors.Join(err, connErr); err != nil || conn == nil {
		return err
	}
	defer closeNetns()
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

// connect returns a connection to the network namespace of the rules; nil if that is gone.
func (n note) connect() (conn *nftables.Conn, closeNetns func() error, err error) {
	if n.Index != 0 || n.Netns == "" {
		conn, err = nftables.New()
		return conn, func() error { return nil }, err
	}
	netns, err := os.Open(n.Netns)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	conn, err = nftables.New(nftables.WithNetNSFd(int(netns.Fd())))
	return conn, netns.Close, err
}

func (g guards) read(name string) (noted note, err error) {
	text, err := os.ReadFile(filepath.Join(g.folder, name))
	if err == nil {
		err = json.Unmarshal(text, &noted)
	}
	return noted, err
}
