package main

import "testing"

func TestTrunkPassesTaggedFramesOnlyOfItsVLANs(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.apply(golden(t, "trunk")))
	dropped := uint64(0)
	for _, each := range []struct {
		tag    string
		passes bool
	}{
		{"0065", true}, {"a065", true}, {"00c8", true}, {"012b", true},
		{"0000", false}, {"e000", false}, {"0001", false}, {"0066", false}, {"012c", false}, {"0fff", false},
	} {
		n.passes(ethernet(guestMAC, "8100", each.tag+"0800"))
		if !each.passes {
			dropped++
		}
		if counted := n.counted("vlan_tag"); counted != dropped {
			t.Fatalf("after tag %s: %d frames dropped, not %d", each.tag, counted, dropped)
		}
	}
}
