package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
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
	// The element or value that stands for the MAC address of the pod's interface.
	ownMAC = "interface"
	// Of a set whose elements have a timeout.
	heldSize = 4
	register = unix.NFT_REG_1
	priority = -100
	// NFT_DYNSET_OP_DELETE, NF_DROP, NF_ACCEPT, NFTA_DEVICE_NAME and NFTA_HOOK_DEVS, which package unix lacks.
	dynsetDelete, nfDrop, nfAccept, deviceName, hookDevices = 2, 0, 1, 1, 4
)

// keyTypes are the numbers by which nft knows the types of sets, and their lengths.
var keyTypes = map[string]struct{ number, length uint32 }{
	"ether_addr": {9, 6}, "ipv4_addr": {7, 4}, "ipv6_addr": {8, 16}, "inet_proto": {12, 1},
}

var headers = map[string]uint32{
	"link": unix.NFT_PAYLOAD_LL_HEADER, "network": unix.NFT_PAYLOAD_NETWORK_HEADER, "transport": unix.NFT_PAYLOAD_TRANSPORT_HEADER,
}

var comparisons = map[string]uint32{
	"==": unix.NFT_CMP_EQ, "!=": unix.NFT_CMP_NEQ, ">=": unix.NFT_CMP_GTE, "<=": unix.NFT_CMP_LTE,
}

func (r ruleSet) count() (sum int) {
	for _, each := range r.Chains {
		sum += len(each.Rules)
	}
	return sum
}

// translate returns the messages that add sets, counters, chains and rules to a table.
func translate(table string, rules *ruleSet, at port) (list []message, err error) {
	if len(rules.Chains) == 0 {
		return nil, errors.New("the agent sent no chain")
	}
	for i, set := range rules.Sets {
		messages, err := setMessages(table, set, at.mac, uint32(i+1))
		if err != nil {
			return nil, err
		}
		list = append(list, messages...)
	}
	for i, each := range rules.Chains {
		of := attributes{}.text(unix.NFTA_CHAIN_TABLE, table).text(unix.NFTA_CHAIN_NAME, each.Name)
		if i == 0 {
			of = hooked(of, at, rules.Mode)
		}
		list = append(list, tableMessage(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, of))
	}
	counters := map[string]bool{}
	for _, each := range rules.Chains {
		for _, one := range each.Rules {
			if one.Counts != "" && !counters[one.Counts] {
				counters[one.Counts] = true
				list = append(list, counterMessage(table, one.Counts))
			}
			expressions, err := expressionsOf(one, at.mac)
			if err != nil {
				return nil, err
			}
			of := attributes{}.text(unix.NFTA_RULE_TABLE, table).text(unix.NFTA_RULE_CHAIN, each.Name)
			of = of.nested(unix.NFTA_RULE_EXPRESSIONS, expressions)
			list = append(list, tableMessage(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, of))
		}
	}
	return list, nil
}

// tableMessage returns a message about tables of the family netdev, or what is in them.
func tableMessage(kind, flags uint16, of attributes) message {
	body := append([]byte{unix.NFPROTO_NETDEV, unix.NFNETLINK_V0, 0, 0}, of...)
	return message{unix.NFNL_SUBSYS_NFTABLES<<8 | kind, flags, body}
}

// parseContent returns the attributes of a table, or of what is in it.
func parseContent(body []byte) (map[uint16][]byte, error) {
	return parseAttributes(body[min(len(body), 4):])
}

// hooked adds the place at which a chain sees the frames of a port, before any other host does.
func hooked(chain attributes, at port, mode string) attributes {
	before := int32(priority)
	hook := attributes{}.number(unix.NFTA_HOOK_HOOKNUM, at.hook).number(unix.NFTA_HOOK_PRIORITY, uint32(before))
	policy := uint32(nfDrop)
	if mode != enforce {
		policy = nfAccept
	}
	if at.renamed == "" {
		hook = hook.text(unix.NFTA_HOOK_DEV, at.device)
	} else {
		names := attributes{}.text(deviceName, at.device).text(deviceName, at.renamed)
		hook = hook.nested(hookDevices, names)
	}
	chain = chain.nested(unix.NFTA_CHAIN_HOOK, hook)
	return chain.number(unix.NFTA_CHAIN_POLICY, policy).text(unix.NFTA_CHAIN_TYPE, "filter")
}

func counterMessage(table, name string) message {
	of := attributes{}.text(unix.NFTA_OBJ_TABLE, table).text(unix.NFTA_OBJ_NAME, name)
	of = of.number(unix.NFTA_OBJ_TYPE, unix.NFT_OBJECT_COUNTER).nested(unix.NFTA_OBJ_DATA, nil)
	return tableMessage(unix.NFT_MSG_NEWOBJ, unix.NLM_F_CREATE, of)
}

func setMessages(table string, set members, mac []byte, id uint32) ([]message, error) {
	key, known := keyTypes[set.Type]
	if !known {
		return nil, fmt.Errorf("set %s has the unknown type %q", set.Name, set.Type)
	}
	flags := uint32(0)
	of := attributes{}.text(unix.NFTA_SET_TABLE, table).text(unix.NFTA_SET_NAME, set.Name).number(unix.NFTA_SET_ID, id)
	if set.IsInterval {
		flags |= unix.NFT_SET_INTERVAL
	}
	if set.TimeoutSeconds > 0 {
		flags |= unix.NFT_SET_TIMEOUT | unix.NFT_SET_EVAL
		of = of.bytes(unix.NFTA_SET_TIMEOUT, binary.BigEndian.AppendUint64(nil, uint64(set.TimeoutSeconds)*1000))
		of = of.nested(unix.NFTA_SET_DESC, attributes{}.number(unix.NFTA_SET_DESC_SIZE, heldSize))
	} else if !set.IsInterval {
		// with a size the kernel takes the simplest hash table
		of = of.nested(unix.NFTA_SET_DESC, attributes{}.number(unix.NFTA_SET_DESC_SIZE, uint32(max(1, len(set.Elements)))))
	}
	of = of.number(unix.NFTA_SET_FLAGS, flags).number(unix.NFTA_SET_KEY_TYPE, key.number).number(unix.NFTA_SET_KEY_LEN, key.length)
	list := []message{tableMessage(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, of)}
	elements, err := elementsOf(set, mac, int(key.length))
	if err != nil || len(elements) == 0 {
		return list, err
	}
	of = attributes{}.text(unix.NFTA_SET_ELEM_LIST_TABLE, table).text(unix.NFTA_SET_ELEM_LIST_SET, set.Name)
	of = of.nested(unix.NFTA_SET_ELEM_LIST_ELEMENTS, elements)
	return append(list, tableMessage(unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE, of)), nil
}

func elementsOf(set members, mac []byte, length int) (list attributes, err error) {
	for _, text := range set.Elements {
		if text == ownMAC {
			list = list.nested(unix.NFTA_LIST_ELEM, element(mac))
			continue
		}
		first, last, isRange := strings.Cut(text, "-")
		from, err := bytesOf(first, length)
		if err != nil {
			return nil, err
		}
		list = list.nested(unix.NFTA_LIST_ELEM, element(from))
		if isRange {
			to, err := bytesOf(last, length)
			if err != nil {
				return nil, err
			}
			end := element(next(to)).number(unix.NFTA_SET_ELEM_FLAGS, unix.NFT_SET_ELEM_INTERVAL_END)
			list = list.nested(unix.NFTA_LIST_ELEM, end)
		}
	}
	return list, nil
}

func element(key []byte) attributes {
	return attributes{}.nested(unix.NFTA_SET_ELEM_KEY, value(key))
}

func value(data []byte) attributes {
	return attributes{}.bytes(unix.NFTA_DATA_VALUE, data)
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
