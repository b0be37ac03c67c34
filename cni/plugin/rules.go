package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
		// Whose port it is. It goes back to the agent in a note.
		Subject json.RawMessage `json:"subject"`
		// Whether only the guest of a virtual machine sends from the pod.
		IsGuest bool `json:"isGuest"`
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
	heldSize = 4
	register = 1
	filterAt = nftables.ChainPriority(-100)
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

func (r ruleSet) count() (sum int) {
	for _, each := range r.Chains {
		sum += len(each.Rules)
	}
	return sum
}

// translate adds sets, counters, chains and rules to the transaction.
func translate(conn *nftables.Conn, table *nftables.Table, rules *ruleSet, at port) error {
	if len(rules.Chains) == 0 {
		return errors.New("the agent sent no chain")
	}
	for _, set := range rules.Sets {
		if err := addSet(conn, table, set, at.mac); err != nil {
			return err
		}
	}
	policy, priority := nftables.ChainPolicyDrop, filterAt
	if rules.Mode != enforce {
		policy = nftables.ChainPolicyAccept
	}
	chains := map[string]*nftables.Chain{}
	for i, each := range rules.Chains {
		added := &nftables.Chain{Name: each.Name, Table: table}
		if i == 0 {
			added.Type, added.Hooknum, added.Priority = nftables.ChainTypeFilter, at.hook, &priority
			added.Device, added.Policy = at.device, &policy
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
