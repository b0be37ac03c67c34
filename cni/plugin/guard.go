package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// The rules of one port, as the agent sends them (cni/agent/guard/rule-set.ts).
type (
	ruleSet struct {
		Mode   string    `json:"mode"`
		Sets   []members `json:"sets"`
		Chains []chain   `json:"chains"`
	}
	members struct {
		Name           string   `json:"name"`
		Type           string   `json:"type"`
		Elements       []string `json:"elements"`
		IsInterval     bool     `json:"isInterval"`
		TimeoutSeconds uint32   `json:"timeoutSeconds"`
	}
	chain struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	rule struct {
		Matches []match `json:"matches"`
		Counts  string  `json:"counts"`
		Verdict string  `json:"verdict"`
	}
	match struct {
		Name   string `json:"name"`
		Header string `json:"header"`
		Offset uint32 `json:"offset"`
		Length uint32 `json:"length"`
		Mask   string `json:"mask"`
		Op     string `json:"op"`
		Value  string `json:"value"`
	}
)

const (
	enforce = "Enforce"
	// The element that stands for the MAC address of the pod's interface.
	ownMAC = "interface"
	// NFT_DYNSET_OP_DELETE
	deleteElement = 2
	// Of a set whose elements have a timeout.
	heldSize  = 4
	register  = 1
	ingressAt = nftables.ChainPriority(-100)
)

var (
	keyTypes = map[string]nftables.SetDatatype{
		"ether_addr": nftables.TypeEtherAddr, "ipv4_addr": nftables.TypeIPAddr, "ipv6_addr": nftables.TypeIP6Addr,
		"inet_proto": nftables.TypeInetProto,
	}
	headers = map[string]expr.PayloadBase{
		"link": expr.PayloadBaseLLHeader, "network": expr.PayloadBaseNetworkHeader, "transport": expr.PayloadBaseTransportHeader,
	}
	comparisons = map[string]expr.CmpOp{
		"==": expr.CmpOpEq, "!=": expr.CmpOpNeq, ">=": expr.CmpOpGte, "<=": expr.CmpOpLte,
	}
)

// guards applies and removes the rules of ports. The folder has a file for each port that has rules, with the index of its
// interface, so that a node without guards never loads nftables. It is in memory, as the rules are.
type guards struct {
	folder string
}

// tableName returns the name of the table of an interface, which is also that of its file.
func tableName(asked request) string {
	sum := sha256.Sum256([]byte(asked.Env["CNI_CONTAINERID"] + "/" + asked.Env["CNI_IFNAME"]))
	return "holdfast_" + hex.EncodeToString(sum[:12])
}

func tableOf(name string) *nftables.Table {
	return &nftables.Table{Name: name, Family: nftables.TableFamilyNetdev}
}

// apply replaces the rules of a port in one transaction.
func (g guards) apply(asked request, rules *ruleSet) error {
	host, pod, err := hostEnd(asked.Env["CNI_NETNS"], asked.Env["CNI_IFNAME"])
	if err != nil {
		return err
	}
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	table := tableOf(tableName(asked))
	// an earlier ADD may have left one: a table must exist to be deleted
	conn.AddTable(table)
	conn.DelTable(table)
	conn.AddTable(table)
	if err := translate(conn, table, rules, host.name, pod.mac); err != nil {
		return err
	}
	err = os.MkdirAll(g.folder, 0o700)
	note := os.WriteFile(filepath.Join(g.folder, table.Name), []byte(strconv.Itoa(int(host.index))), 0o600)
	if err = errors.Join(err, note); err != nil {
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
		text, readErr := os.ReadFile(filepath.Join(g.folder, file.Name()))
		index, numberErr := strconv.ParseUint(string(text), 10, 32)
		err = errors.Join(err, readErr, numberErr)
		if readErr != nil || numberErr != nil {
			continue
		}
		if _, findErr := findLink(0, uint32(index), ""); errors.Is(findErr, syscall.ENODEV) {
			err = errors.Join(err, g.remove(file.Name()))
		}
	}
	return err
}

// check returns an error that names what a port lacks.
func (g guards) check(asked request, rules *ruleSet) error {
	host, _, err := hostEnd(asked.Env["CNI_NETNS"], asked.Env["CNI_IFNAME"])
	if err != nil {
		return err
	}
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	table := tableOf(tableName(asked))
	for _, wanted := range rules.Chains {
		found, err := conn.GetRules(table, &nftables.Chain{Name: wanted.Name, Table: table})
		if err != nil || len(found) != len(wanted.Rules) {
			return fmt.Errorf("interface %s of the host has %d of %d rules in chain %s of table %s: recreate the pod",
				host.name, len(found), len(wanted.Rules), wanted.Name, table.Name)
		}
	}
	for _, wanted := range rules.Sets {
		found, err := conn.GetSetByName(table, wanted.Name)
		if wanted.TimeoutSeconds > 0 {
			continue // its elements have left it
		}
		elements := []nftables.SetElement{}
		if err == nil {
			elements, err = conn.GetSetElements(found)
		}
		if err != nil || len(elements) != len(wanted.Elements)*bounds(wanted) {
			return fmt.Errorf("interface %s of the host has other addresses in set %s of table %s than its claim: recreate the pod",
				host.name, wanted.Name, table.Name)
		}
	}
	return nil
}

func bounds(set members) int {
	if set.IsInterval {
		return 2
	}
	return 1
}

// translate adds sets, counters, chains and rules to the transaction.
func translate(conn *nftables.Conn, table *nftables.Table, rules *ruleSet, device string, mac []byte) error {
	if len(rules.Chains) == 0 {
		return errors.New("the agent sent no chain")
	}
	for _, set := range rules.Sets {
		if err := addSet(conn, table, set, mac); err != nil {
			return err
		}
	}
	policy, hook, priority := nftables.ChainPolicyDrop, nftables.ChainHookIngress, ingressAt
	if rules.Mode != enforce {
		policy = nftables.ChainPolicyAccept
	}
	chains := map[string]*nftables.Chain{}
	for i, each := range rules.Chains {
		added := &nftables.Chain{Name: each.Name, Table: table}
		if i == 0 {
			added.Type, added.Hooknum, added.Priority = nftables.ChainTypeFilter, hook, &priority
			added.Device, added.Policy = device, &policy
		}
		chains[each.Name] = conn.AddChain(added)
	}
	counters := map[string]bool{}
	for _, each := range rules.Chains {
		for _, one := range each.Rules {
			if one.Counts != "" && !counters[one.Counts] {
				counters[one.Counts] = true
				conn.AddObj(&nftables.NamedObj{Table: table, Name: one.Counts, Type: nftables.ObjTypeCounter, Obj: &expr.Counter{}})
			}
			expressions, err := expressionsOf(one)
			if err != nil {
				return err
			}
			conn.AddRule(&nftables.Rule{Table: table, Chain: chains[each.Name], Exprs: expressions})
		}
	}
	return nil
}

func addSet(conn *nftables.Conn, table *nftables.Table, set members, mac []byte) error {
	keyType, known := keyTypes[set.Type]
	if !known {
		return fmt.Errorf("set %s has the unknown type %q", set.Name, set.Type)
	}
	added := &nftables.Set{Table: table, Name: set.Name, KeyType: keyType, Interval: set.IsInterval}
	if set.TimeoutSeconds > 0 {
		added.HasTimeout, added.Dynamic, added.Size = true, true, heldSize
		added.Timeout = time.Duration(set.TimeoutSeconds) * time.Second
	}
	elements := []nftables.SetElement{}
	for _, text := range set.Elements {
		if text == ownMAC {
			elements = append(elements, nftables.SetElement{Key: mac})
			continue
		}
		first, last, isRange := strings.Cut(text, "-")
		from, err := bytesOf(first, int(keyType.Bytes))
		if err != nil {
			return err
		}
		elements = append(elements, nftables.SetElement{Key: from})
		if isRange {
			to, err := bytesOf(last, int(keyType.Bytes))
			if err != nil {
				return err
			}
			elements = append(elements, nftables.SetElement{Key: next(to), IntervalEnd: true})
		}
	}
	return conn.AddSet(added, elements)
}

// next returns the address after an address. The end of an interval is the first address that is not in it.
func next(address []byte) []byte {
	after := bytes.Clone(address)
	for i := len(after) - 1; i >= 0; i-- {
		after[i]++
		if after[i] != 0 {
			break
		}
	}
	return after
}

func expressionsOf(one rule) (list []expr.Any, err error) {
	for _, each := range one.Matches {
		expressions, err := expressionsOfMatch(each)
		if err != nil {
			return nil, err
		}
		list = append(list, expressions...)
	}
	if one.Counts != "" {
		list = append(list, &expr.Objref{Type: int(nftables.ObjTypeCounter), Name: one.Counts})
	}
	target, isGoto := strings.CutPrefix(one.Verdict, "goto ")
	switch {
	case isGoto:
		return append(list, &expr.Verdict{Kind: expr.VerdictGoto, Chain: target}), nil
	case one.Verdict == "accept":
		return append(list, &expr.Verdict{Kind: expr.VerdictAccept}), nil
	case one.Verdict == "drop":
		return append(list, &expr.Verdict{Kind: expr.VerdictDrop}), nil
	}
	return nil, fmt.Errorf("unknown verdict %q", one.Verdict)
}

func expressionsOfMatch(m match) ([]expr.Any, error) {
	list, err := load(m)
	if err != nil {
		return nil, err
	}
	switch m.Op {
	case "in", "not in":
		return append(list, &expr.Lookup{SourceRegister: register, SetName: m.Value, Invert: m.Op == "not in"}), nil
	case "delete":
		return append(list, &expr.Dynset{SrcRegKey: register, SetName: m.Value, Operation: deleteElement}), nil
	}
	op, known := comparisons[m.Op]
	value, err := bytesOf(m.Value, int(m.Length))
	if !known || err != nil {
		return nil, errors.Join(fmt.Errorf("unknown comparison of %s: %q", m.Name, m.Op), err)
	}
	return append(list, &expr.Cmp{Op: op, Register: register, Data: value}), nil
}

// load returns the expressions that put a field into the register.
func load(m match) ([]expr.Any, error) {
	if m.Header == "l4proto" {
		return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}}, nil
	}
	base, known := headers[m.Header]
	if !known || m.Length == 0 || m.Length > 16 {
		return nil, fmt.Errorf("unknown field %s: header %q, length %d", m.Name, m.Header, m.Length)
	}
	list := []expr.Any{&expr.Payload{DestRegister: register, Base: base, Offset: m.Offset, Len: m.Length}}
	if m.Mask == "" {
		return list, nil
	}
	mask, err := bytesOf(m.Mask, int(m.Length))
	if err != nil {
		return nil, err
	}
	masked := &expr.Bitwise{SourceRegister: register, DestRegister: register, Len: m.Length, Mask: mask, Xor: make([]byte, m.Length)}
	return append(list, masked), nil
}

func bytesOf(digits string, length int) ([]byte, error) {
	value, err := hex.DecodeString(digits)
	if err == nil && len(value) != length {
		err = fmt.Errorf("%q has %d bytes instead of %d", digits, len(value), length)
	}
	return value, err
}
