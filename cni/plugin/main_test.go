package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A test runs the plugin in a process of its own, with a shorter limit.
func TestMain(m *testing.M) {
	if limit, err := time.ParseDuration(os.Getenv("TEST_LOCK_LIMIT")); err == nil {
		lockLimit = limit
		main()
	}
	os.Exit(m.Run())
}

// call runs the plugin, with an agent that answers with these rules.
func (n *node) call(command, answered string) (stdout, stderr string, err error) {
	n.t.Helper()
	socket := filepath.Join(filepath.Dir(n.ports.folder), "agent.sock")
	agent, err := net.Listen("unix", socket)
	must(n.t, err)
	defer agent.Close()
	go func() {
		conn, err := agent.Accept()
		if err == nil {
			conn.Read(make([]byte, 1<<16)) // else the answer would be lost
			io.WriteString(conn, answered)
			conn.Close()
		}
	}()
	plugin := exec.Command(os.Args[0])
	plugin.Env = []string{"TEST_LOCK_LIMIT=100ms", "HOLDFAST_SOCKET=" + socket, "CNI_COMMAND=" + command}
	for name, value := range n.asked.Env {
		plugin.Env = append(plugin.Env, name+"="+value)
	}
	var output, problems bytes.Buffer
	plugin.Stdout, plugin.Stderr = &output, &problems
	err = plugin.Run()
	return output.String(), problems.String(), err
}

func TestAProcessThatHangsWithTheLockKeepsNoADDAndNoDELWaitingWithoutEnd(t *testing.T) {
	n := newNode(t, "veth")
	run(t, "nsenter --net="+n.asked.Env["CNI_NETNS"]+" ip link set net1 down")
	must(t, n.apply(golden(t, "enforce")))
	hanging, err := os.Open(n.ports.folder)
	must(t, err)
	must(t, unix.Flock(int(hanging.Fd()), unix.LOCK_EX))
	held := "cannot lock " + n.ports.folder + ": another process of the plugin has held the lock"

	rules := string(encode(answer{Exit: new(int), Output: new(string), Guard: golden(t, "enforce")}))
	stdout, _, err := n.call("ADD", rules)
	if err == nil || !strings.Contains(stdout, `"code":11`) || !strings.Contains(stdout, held) {
		t.Errorf("ADD: %v, %s", err, stdout)
	}
	rules = string(encode(answer{Exit: new(int), Output: new(string), Guard: golden(t, "observe")}))
	if _, stderr, err := n.call("ADD", rules); err != nil || strings.Count(stderr, held) != 1 {
		t.Errorf("ADD that observes, which waits once: %v, %s", err, stderr)
	}
	if noted, err := n.ports.read(tableName(n.asked)); err != nil || noted.Index == 0 || !strings.Contains(noted.Failure, held) {
		t.Errorf("the agent cannot report it: %+v, %v", noted, err)
	}
	run(t, "ip link del vg")
	none := string(encode(answer{Exit: new(int), Output: new(string)}))
	if _, stderr, err := n.call("DEL", none); err != nil || !strings.Contains(stderr, held) {
		t.Errorf("DEL: %v, %s", err, stderr)
	}
	must(t, hanging.Close())
	if _, stderr, err := n.call("DEL", none); err != nil || stderr != "" || n.tables() != 0 {
		t.Errorf("DEL after it has ended: %v, %s, %d tables", err, stderr, n.tables())
	}
	if _, err := n.ports.read(tableName(n.asked)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the note is left: %v", err)
	}
}

func TestADELDoesNotUseUpTheTimeOfTheOtherInterfaces(t *testing.T) {
	for _, each := range []struct {
		command, setting string
		limit            time.Duration
	}{
		{"DEL", "", 20 * time.Second},
		{"DEL", "3m", 20 * time.Second},
		{"DEL", "200ms", 200 * time.Millisecond},
		{"ADD", "", 110 * time.Second},
		{"ADD", "3m", 3 * time.Minute},
		{"ADD", "-1s", 110 * time.Second},
	} {
		if got := timeLimit(each.command, each.setting); got != each.limit {
			t.Errorf("%s with HOLDFAST_TIMEOUT=%q waits %s", each.command, each.setting, got)
		}
	}
}
