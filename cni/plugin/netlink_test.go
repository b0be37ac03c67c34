package main

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAnswersThatAreCutOffAreErrors(t *testing.T) {
	if _, err := parseMessages([]byte{99, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}); err == nil {
		t.Error("a message that is longer than its datagram is no error")
	}
	if _, err := parseAttributes([]byte{9, 0, 1, 0, 0}); err == nil {
		t.Error("an attribute that is longer than its message is no error")
	}
}

func TestADumpThatWasInterruptedIsNoAnswer(t *testing.T) {
	interrupted := make([]byte, unix.SizeofNlMsghdr)
	binary.NativeEndian.PutUint32(interrupted, unix.SizeofNlMsghdr)
	binary.NativeEndian.PutUint16(interrupted[4:], unix.NLMSG_DONE)
	binary.NativeEndian.PutUint16(interrupted[6:], unix.NLM_F_MULTI|unix.NLM_F_DUMP_INTR)
	if _, err := parseMessages(interrupted); err != unix.EINTR {
		t.Errorf("an interrupted dump: %v", err)
	}
}

func TestTheFirstErrorOfATransactionIsReturned(t *testing.T) {
	newNode(t, "veth")
	rule := attributes{}.text(unix.NFTA_RULE_TABLE, "absent").text(unix.NFTA_RULE_CHAIN, "absent")
	added := tableMessage(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, tableNamed("holdfast_test"))
	err := transact(0, []message{tableMessage(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE, rule), added})
	if err != unix.ENOENT {
		t.Errorf("a rule without a table: %v", err)
	}
	if err := transact(0, []message{added}); err != nil {
		t.Error(err)
	}
}

func TestWithoutAnAnswerNothingCountsAsDone(t *testing.T) {
	newNode(t, "veth")
	if _, err := exchange(unix.NETLINK_ROUTE, 0, message{kind: unix.NLMSG_NOOP}); err == nil {
		t.Error("a message that the kernel does not answer is no error")
	}
}

func TestWhatAProcessSendsIsNoAnswerOfTheKernel(t *testing.T) {
	newNode(t, "veth")
	socket, err := openSocket(unix.NETLINK_ROUTE, 0)
	must(t, err)
	defer unix.Close(socket)
	must(t, unix.Bind(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	bound, err := unix.Getsockname(socket)
	must(t, err)
	process, err := openSocket(unix.NETLINK_ROUTE, 0)
	must(t, err)
	defer unix.Close(process)
	forged := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(forged, uint32(len(forged)))
	binary.NativeEndian.PutUint16(forged[4:], unix.RTM_NEWLINK)
	must(t, unix.Sendto(process, forged, 0, bound))
	if answers, err := receive(socket); err == nil {
		t.Errorf("a process answered in place of the kernel: %v", answers)
	}
}
