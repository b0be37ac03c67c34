// Command holdfast is the CNI plugin. It passes the runtime's request to the agent of the node and prints the answer.
// If no agent answers, it fails with code 11, on which the kubelet retries, or stores a DEL as a pending delete. It applies the
// rules of a guard that the agent sends, and removes them. As `holdfast count-drops FOLDER` it counts what all guards of a node drop, and
// as `holdfast remove-guards` it removes all of them.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	defaultSocket = "/run/holdfast/agent.sock"
	// Runtimes allow two minutes or more for a sandbox.
	defaultTimeout = 110 * time.Second
	// The agent answers a DEL within 11 s. One that is stopped must not use up the two minutes with the first interfaces of a pod.
	maxDeleteTimeout = 20 * time.Second
	// The agent refuses longer requests, so it also refuses a config that was cut off here.
	maxConfig = 256<<10 + 1
	maxAnswer = 1 << 20
	// Retry interval while the backlog of the agent's socket is full.
	backlogRetry = 10 * time.Millisecond
	guardVersion = 1
	// Codes of CNI errors.
	invalidEnvironment, tryAgain, notAvailable, refused = 4, 11, 50, 100
)

// request is the message to the agent. A pending delete contains the shortest DEL.
type request struct {
	Env    map[string]string `json:"env"`
	Config string            `json:"config"`
	// The version of rules that this plugin can apply. Older plugins send none, and would ignore a guard.
	Guard int `json:"guard,omitempty"`
}

type answer struct {
	Exit   *int    `json:"exit"`
	Output *string `json:"output"`
	// Absent without a guard.
	Guard *ruleSet `json:"guard"`
}

type cniError struct {
	CNIVersion string `json:"cniVersion"`
	Code       int    `json:"code"`
	Msg        string `json:"msg"`
	Details    string `json:"details,omitempty"`
}

// cleaning runs beside the agent, because the kernel takes several milliseconds to delete a table.
var cleaning sync.WaitGroup

func main() {
	if len(os.Args) == 3 && os.Args[1] == "count-drops" {
		exitAfter("cannot count what guards drop", countDrops(os.Args[2]))
	}
	socket := os.Getenv("HOLDFAST_SOCKET")
	if socket == "" {
		socket = defaultSocket
	}
	ports := guards{folder: filepath.Join(filepath.Dir(socket), "guards")}
	if len(os.Args) == 2 && os.Args[1] == "remove-guards" {
		exitAfter("cannot remove the rules of guards", ports.removeAll())
	}
	asked := newRequest(os.Environ())
	if asked.Env["CNI_COMMAND"] == "" {
		fail(asked, invalidEnvironment, "CNI_COMMAND is absent: this program is a CNI plugin, to be called by container runtimes", "")
	}
	timeout := timeLimit(asked.Env["CNI_COMMAND"], os.Getenv("HOLDFAST_TIMEOUT"))
	deadline := time.After(timeout)
	late := errors.New("no answer within " + timeout.String())

	clean(asked, ports)
	config, err := within(deadline, late, func() (string, error) { return readConfig(os.Stdin, asked.Env["CNI_COMMAND"]) })
	asked.Config = config
	if err != nil {
		answerWithoutAgent(asked, socket, err)
	}
	got, err := within(deadline, late, func() (answer, error) { return ask(socket, asked) })
	if err != nil {
		answerWithoutAgent(asked, socket, err)
	}
	if got.Guard != nil {
		guardPort(asked, ports, got.Guard)
	} else if asked.Env["CNI_COMMAND"] == "ADD" && *got.Exit == 0 {
		warnOfRules(ports.replace(tableName(asked)))
	}
	if asked.Env["CNI_COMMAND"] == "CHECK" && *got.Exit == 0 {
		if err := ports.check(asked); err != nil {
			fail(asked, refused, err.Error(), "")
		}
	}
	finish(*got.Output, *got.Exit)
}

func newRequest(environment []string) request {
	asked := request{Env: map[string]string{}, Guard: guardVersion}
	for _, pair := range environment {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "CNI_") {
			asked.Env[name] = value
		}
	}
	return asked
}

// timeLimit returns how long the plugin may take. A setting that is invalid or absent is ignored.
func timeLimit(command, setting string) time.Duration {
	limit, err := time.ParseDuration(setting)
	if err != nil || limit <= 0 {
		limit = defaultTimeout
	}
	if command == "DEL" {
		return min(limit, maxDeleteTimeout)
	}
	return limit
}

// readConfig returns the config on stdin. That of a DEL has only the version, which an error repeats: a config that is too large
// for the agent must not keep a pod from ending. Invalid text stays as it is, and the agent refuses it.
func readConfig(stdin io.Reader, command string) (string, error) {
	if command != "DEL" {
		text, err := io.ReadAll(io.LimitReader(stdin, maxConfig))
		return string(text), err
	}
	text, err := io.ReadAll(stdin)
	var used struct {
		CNIVersion any `json:"cniVersion,omitempty"`
	}
	if err == nil && json.Unmarshal(text, &used) == nil {
		text, err = json.Marshal(used)
	}
	return string(text), err
}

// clean removes the rules of interfaces that are gone: at DEL, too, because not every runtime calls GC. The plugin bridge calls IPAM
// after it has removed the interface. A chained plugin, and the IPAM of macvlan, run before: then the next DEL or GC of the node removes
// them, and meanwhile the interface stays guarded. A failure must not keep a pod from ending.
func clean(asked request, ports guards) {
	ended := ""
	if asked.Env["CNI_COMMAND"] == "DEL" {
		ended = tableName(asked)
	} else if asked.Env["CNI_COMMAND"] != "GC" {
		return
	}
	cleaning.Add(1)
	go func() {
		defer cleaning.Done()
		warnOfRules(ports.collect(ended))
	}()
}

func warnOfRules(err error) {
	if err != nil {
		os.Stderr.WriteString("holdfast: cannot remove the rules of a guard: " + err.Error() + "\n")
	}
}

// guardPort applies the rules of a port. It does not return if they are required and missing.
func guardPort(asked request, ports guards, rules *ruleSet) {
	err := ports.apply(asked, rules, rules.Mode != enforce)
	if err == nil {
		return
	}
	msg := "the guard of interface " + asked.Env["CNI_IFNAME"] + " cannot be applied: " + err.Error()
	if rules.Mode == enforce {
		if errors.Is(err, errLocked) {
			fail(asked, tryAgain, msg+"; the kubelet retries", "")
		}
		fail(asked, refused, msg, "")
	}
	write := func() error {
		earlier, _ := ports.read(tableName(asked)) // without its index, the rules of an earlier ADD would never be removed
		return ports.write(asked, rules, note{Index: earlier.Index, Failure: msg})
	}
	if errors.Is(err, errLocked) {
		err = write() // the pod does not wait again: at worst, the note is removed with that of an earlier ADD
	} else {
		err = ports.locked(write)
	}
	if err != nil {
		msg += "; the agent cannot report it: " + err.Error()
	}
	os.Stderr.WriteString("holdfast: " + msg + "\n")
}

// exitAfter ends a command for people and containers.
func exitAfter(problem string, err error) {
	if err == nil {
		os.Exit(0)
	}
	os.Stderr.WriteString("holdfast: " + problem + ": " + err.Error() + "\n")
	os.Exit(1)
}

func within[T any](deadline <-chan time.Time, late error, work func() (T, error)) (T, error) {
	var value T
	done := make(chan error, 1)
	go func() {
		got, err := work()
		value = got
		done <- err
	}()
	select {
	case err := <-done:
		return value, err
	case <-deadline:
		var none T
		return none, late
	}
}

// ask sends one line of JSON and reads one JSON object. The connection stays open in both directions meanwhile, because
// its end tells the agent that the caller no longer waits.
func ask(socket string, asked request) (got answer, err error) {
	conn, err := net.Dial("unix", socket)
	for errors.Is(err, syscall.EAGAIN) {
		time.Sleep(backlogRetry)
		conn, err = net.Dial("unix", socket)
	}
	if err != nil {
		return got, err
	}
	// A write may fail because the agent has refused the request without reading all of it. Its answer counts.
	_, writeErr := conn.Write(encode(asked))
	text, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err != nil || len(text) == 0 {
		return got, errors.Join(errors.New("the agent closed the connection without an answer"), writeErr, err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return got, errors.New("the agent's answer is invalid: " + err.Error())
	}
	if got.Exit == nil || got.Output == nil {
		return got, errors.New("the agent's answer has no exit code or no output")
	}
	return got, nil
}

// answerWithoutAgent answers in place of the agent, and never returns. A DEL becomes a pending delete, so that the pod can end.
func answerWithoutAgent(asked request, socket string, cause error) {
	os.Stderr.WriteString("holdfast: " + cause.Error() + "\n")
	code, details := tryAgain, cause.Error()
	switch asked.Env["CNI_COMMAND"] {
	case "DEL":
		err := storePendingDelete(asked, filepath.Join(filepath.Dir(socket), "deletions"))
		if err == nil {
			finish("", 0)
		}
		details += "; the pending delete could not be stored either: " + err.Error()
	case "STATUS":
		code = notAvailable
	}
	fail(asked, code, "the agent of this node does not answer at "+socket+": check that its pod is running; the kubelet retries", details)
}

func fail(asked request, code int, msg, details string) {
	var config struct{ CNIVersion string }
	if json.Unmarshal([]byte(asked.Config), &config) != nil || config.CNIVersion == "" {
		config.CNIVersion = "1.1.0"
	}
	finish(string(encode(cniError{config.CNIVersion, code, msg, details})), 1)
}

// finish prints the output and exits. It never returns.
func finish(output string, exit int) {
	cleaning.Wait()
	if _, err := os.Stdout.WriteString(output); err != nil {
		exit = 1
	}
	os.Exit(exit)
}

// encode returns one line of JSON.
func encode(value any) []byte {
	text, _ := json.Marshal(value) // only strings and numbers: it cannot fail
	return append(text, '\n')
}
