package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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
	// Why a port has no rules: they could not be applied to an observed port, or another program has removed them.
	Failure string `json:"failure,omitempty"`
	// Whose port it is, as the agent wrote it.
	Subject json.RawMessage `json:"subject,omitempty"`
	// What the file has, also if it cannot be parsed.
	text []byte
}

const tablePrefix = "holdfast_"

var errLocked = errors.New("another process of the plugin has held the lock")

// How long a process waits for one that hangs in the kernel with the lock. A test shortens it.
var lockLimit = 10 * time.Second

// tableName returns the name of the table of an interface, which is also that of its file.
func tableName(asked request) string {
	sum := sha256.Sum256([]byte(asked.Env["CNI_CONTAINERID"] + "/" + asked.Env["CNI_IFNAME"]))
	return tablePrefix + hex.EncodeToString(sum[:12])
}

// apply gives a port its rules in one transaction. An earlier ADD may have left some: deleting them takes the kernel several
// milliseconds, so that is tried only if the table exists.
func (g guards) apply(asked request, rules *ruleSet, mayBeUp bool) error {
	netns, err := os.Open(asked.Env["CNI_NETNS"])
	if err != nil {
		return fmt.Errorf("cannot open CNI_NETNS: %w", err)
	}
	defer netns.Close()
	found, err := findPort(netns, asked.Env["CNI_IFNAME"], rules.IsGuest)
	if err != nil {
		return err
	}
	if found.isUp && !mayBeUp {
		return fmt.Errorf("interface %s is up already, so it may have sent something: update the plugin bridge to 1.1.1 or newer, and for a "+
			"network without IPAM write \"disableContainerInterface\": true into its config", asked.Env["CNI_IFNAME"])
	}
	return g.locked(func() error { return g.applyAt(found, asked, rules) })
}

// applyAt notes a port and creates its rules. Call it locked.
func (g guards) applyAt(found port, asked request, rules *ruleSet) error {
	name := tableName(asked)
	hasEarlier, err := g.leave(name, found)
	if err != nil {
		return err
	}
	if err := g.write(asked, rules, note{Index: found.index, Rules: rules.count()}); err != nil {
		return err
	}
	err = place(name, rules, found)
	if errors.Is(err, syscall.ENOENT) && found.renamed != "" {
		// Before Linux 6.16 all devices of a chain must exist, and a chain stays at a device that is renamed.
		found.renamed = ""
		err = place(name, rules, found)
	}
	if err != nil && !hasEarlier {
		// a kernel that has no nftables could not delete rules either, so no DEL would remove the note
		err = errors.Join(err, removeFile(filepath.Join(g.folder, name)))
	}
	return explain(err)
}

// leave deletes the rules that an earlier interface of another kind has in another network namespace. It reports whether an earlier one
// may have rules in the same.
func (g guards) leave(name string, found port) (hasEarlier bool, err error) {
	earlier, err := g.read(name)
	if err != nil || (earlier.Index == 0) == (found.index == 0) {
		return !errors.Is(err, os.ErrNotExist), nil
	}
	return false, inNetns(earlier.home(), func(netns int) error { return explain(transact(netns, deletion(name))) })
}

// locked runs what changes notes and rules, while no other process does. Otherwise the removal of the rules of an earlier interface
// could remove those of an ADD that uses its name again. The lock ends with the process, too.
func (g guards) locked(change func() error) error {
	// the kubelet creates the folder for others to read, and who can read it can lock it
	if err := errors.Join(os.MkdirAll(g.folder, 0o700), os.Chmod(g.folder, 0o700)); err != nil {
		return err
	}
	folder, err := os.Open(g.folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	late := fmt.Errorf("%w for %s: if this goes on, look for a process `holdfast` that hangs on this node", errLocked, lockLimit)
	// it blocks, because the kernel serves in turn who waits so
	_, err = within(time.After(lockLimit), late, func() (_ any, err error) {
		for err = syscall.EINTR; err == syscall.EINTR; {
			err = unix.Flock(int(folder.Fd()), unix.LOCK_EX)
		}
		return nil, err
	})
	if err != nil {
		return fmt.Errorf("cannot lock %s: %w", g.folder, err)
	}
	return change()
}

// place creates a table, or replaces the one of an earlier ADD.
func place(name string, rules *ruleSet, at port) error {
	content, err := translate(name, rules, at)
	if err != nil {
		return err
	}
	added := tableMessage(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, tableNamed(name))
	content = append([]message{added}, content...)
	err = transact(at.netns, content)
	if errors.Is(err, syscall.EEXIST) {
		err = transact(at.netns, append(deletion(name), content...))
	}
	return err
}

// write notes a port before it gets rules, so that they are always found again. Call it locked, if it gets rules.
func (g guards) write(asked request, rules *ruleSet, noted note) error {
	noted.Netns, noted.Mode, noted.Subject = asked.Env["CNI_NETNS"], rules.Mode, rules.Subject
	return replaceFile(g.folder, tableName(asked), encode(noted))
}

// deletion returns the messages that delete a table, also one that does not exist.
func deletion(table string) []message {
	added := tableMessage(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, tableNamed(table))
	return []message{added, tableMessage(unix.NFT_MSG_DELTABLE, 0, tableNamed(table))}
}

func tableNamed(name string) attributes {
	return attributes{}.text(unix.NFTA_TABLE_NAME, name)
}

// transact carries out all messages, or none of them. It waits for the acknowledgement of the last one.
func transact(netns int, messages []message) error {
	messages[len(messages)-1].flags |= unix.NLM_F_ACK
	body := binary.BigEndian.AppendUint16([]byte{unix.AF_UNSPEC, unix.NFNETLINK_V0}, unix.NFNL_SUBSYS_NFTABLES)
	batch := append([]message{{kind: unix.NFNL_MSG_BATCH_BEGIN, body: body}}, messages...)
	_, err := exchange(unix.NETLINK_NETFILTER, netns, append(batch, message{kind: unix.NFNL_MSG_BATCH_END, body: body})...)
	return err
}

func explain(err error) error {
	if err == nil {
		return nil
	}
	for _, unknown := range []error{syscall.EOPNOTSUPP, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ENOENT} {
		if errors.Is(err, unknown) {
			return fmt.Errorf("the kernel of this node has no nftables of the family netdev, or lacks an expression, or the interface is gone: use Linux 5.4 or newer, "+
				"and for macvlan 5.16 or newer, with CONFIG_NF_TABLES_NETDEV, or set guard.mode to Off (%w)", err)
		}
	}
	return fmt.Errorf("nftables: %w", err)
}

// removeFile removes a file, unless it is gone.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// isCurrent reports whether a note still is what was read.
func (g guards) isCurrent(name string, noted note) bool {
	current, _ := g.read(name)
	return bytes.Equal(current.text, noted.text)
}

// noteNames returns the names of the ports that have a note.
func (g guards) noteNames() (names []string, err error) {
	files, err := os.ReadDir(g.folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), tablePrefix) {
			names = append(names, file.Name())
		}
	}
	return names, err
}

// check returns an error if the rules of a port are not all there. It does not know what they are.
func (g guards) check(asked request) error {
	name := tableName(asked)
	noted, err := g.read(name)
	if errors.Is(err, os.ErrNotExist) || noted.Failure != "" && noted.Rules == 0 {
		return nil // they could not be applied, which the agent reports
	}
	if err != nil {
		return err
	}
	found := noted.Rules // if their network namespace is gone
	err = inNetns(noted.home(), func(netns int) error {
		of := attributes{}.text(unix.NFTA_RULE_TABLE, name)
		rules, err := dump(netns, unix.NFT_MSG_GETRULE, of)
		found = len(rules)
		return err
	})
	if err == nil && found == noted.Rules {
		return nil
	}
	msg := fmt.Errorf("table %s of family netdev has %d of the %d rules of interface %s: recreate the pod", name, found, noted.Rules, asked.Env["CNI_IFNAME"])
	return errors.Join(msg, err)
}

// home returns the network namespace of the rules; empty: this one.
func (n note) home() string {
	if n.Index != 0 {
		return ""
	}
	return n.Netns
}

// inNetns passes a network namespace: a file descriptor, or 0 for this one. If it is gone, nothing is done.
func inNetns(path string, run func(netns int) error) error {
	if path == "" {
		return run(0)
	}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return run(int(file.Fd()))
}

func (g guards) read(name string) (noted note, err error) {
	text, err := os.ReadFile(filepath.Join(g.folder, name))
	if err == nil {
		err = json.Unmarshal(text, &noted)
	}
	noted.text = text
	return noted, err
}
