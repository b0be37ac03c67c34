// Command holdfast is the CNI plugin: it hands the runtime's request to the agent of its node and prints the agent's
// answer. It decides nothing. Where no agent answers it says "try again", and leaves a note of what is to be released.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	defaultSocket = "/run/holdfast/agent.sock"
	// Runtimes give a sandbox two minutes and more.
	defaultTimeout = 110 * time.Second
	// The agent refuses requests over 1 MiB: what is cut off here is refused there.
	maxConfig = 1<<20 + 1
	maxAnswer = 1 << 20
	// Of the agent, too. Notes are in memory: this many take about 20 MiB.
	maxNotes = 4096
	// How soon to come back while the agent's line of connections is full.
	lineRetry = 10 * time.Millisecond
	// Codes of CNI errors.
	invalidEnvironment, tryAgain, notAvailable = 4, 11, 50
)

// request is what the agent is asked. A note is the shortest DEL.
type request struct {
	Env    map[string]string `json:"env"`
	Config string            `json:"config"`
}

type answer struct {
	Exit   *int    `json:"exit"`
	Output *string `json:"output"`
}

type cniError struct {
	CNIVersion string `json:"cniVersion"`
	Code       int    `json:"code"`
	Msg        string `json:"msg"`
	Details    string `json:"details,omitempty"`
}

func main() {
	asked := request{Env: map[string]string{}}
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "CNI_") {
			asked.Env[name] = value
		}
	}
	if asked.Env["CNI_COMMAND"] == "" {
		fail(asked, invalidEnvironment, "CNI_COMMAND is absent: container runtimes call this program, and set it", "")
	}
	socket := os.Getenv("HOLDFAST_SOCKET")
	if socket == "" {
		socket = defaultSocket
	}
	timeout, err := time.ParseDuration(os.Getenv("HOLDFAST_TIMEOUT"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	deadline := time.After(timeout)
	late := errors.New("no answer within " + timeout.String())

	config, err := within(deadline, late, func() ([]byte, error) {
		return io.ReadAll(io.LimitReader(os.Stdin, maxConfig))
	})
	asked.Config = string(config)
	if err != nil {
		away(asked, socket, err)
	}
	got, err := within(deadline, late, func() (answer, error) { return ask(socket, asked) })
	if err != nil {
		away(asked, socket, err)
	}
	finish(*got.Output, *got.Exit)
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

// ask sends one line of JSON and reads one JSON object. The connection stays open both ways meanwhile: its end tells the
// agent that nobody waits any more.
func ask(socket string, asked request) (got answer, err error) {
	conn, err := net.Dial("unix", socket)
	for errors.Is(err, syscall.EAGAIN) {
		time.Sleep(lineRetry)
		conn, err = net.Dial("unix", socket)
	}
	if err != nil {
		return got, err
	}
	// An agent that refuses does not read to the end: what it says counts.
	_, writeErr := conn.Write(encode(asked))
	text, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err != nil || len(text) == 0 {
		return got, errors.Join(errors.New("the agent hung up"), writeErr, err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return got, errors.New("the agent's answer cannot be read: " + err.Error())
	}
	if got.Exit == nil || got.Output == nil {
		return got, errors.New("the agent's answer has no exit code or no output")
	}
	return got, nil
}

// away answers in place of the agent, and never returns. A pod's end does not wait for it.
func away(asked request, socket string, cause error) {
	os.Stderr.WriteString("holdfast: " + cause.Error() + "\n")
	code, details := tryAgain, cause.Error()
	switch asked.Env["CNI_COMMAND"] {
	case "DEL":
		err := leaveNote(asked, filepath.Join(filepath.Dir(socket), "deletions"))
		if err == nil {
			finish("", 0)
		}
		details += "; no note could be left either: " + err.Error()
	case "STATUS":
		code = notAvailable
	}
	fail(asked, code, "the agent of this node does not answer at "+socket+": it is retried until the agent runs", details)
}

// leaveNote writes down for the agent what is to be released. A note is there as a whole or not at all. If there are too many,
// it leaves none: the agent releases the addresses after the pod is gone.
func leaveNote(asked request, folder string) error {
	container, name := asked.Env["CNI_CONTAINERID"], asked.Env["CNI_IFNAME"]
	if container == "" || name == "" {
		return errors.New("CNI_CONTAINERID or CNI_IFNAME is absent")
	}
	err := os.MkdirAll(folder, 0o700)
	notes, listErr := os.ReadDir(folder)
	if err = errors.Join(err, listErr); err != nil {
		return err
	}
	if len(notes) >= maxNotes {
		os.Stderr.WriteString("holdfast: " + folder + " has too many notes for one more\n")
		return nil
	}
	note := request{Env: map[string]string{"CNI_COMMAND": "DEL", "CNI_CONTAINERID": container, "CNI_IFNAME": name}}
	file, err := os.CreateTemp(folder, ".note-*")
	if err != nil {
		return err
	}
	_, err = file.Write(encode(note))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(folder, noteName(container, name)))
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

// noteName is the agent's, too: one name for each interface of a container, whatever characters these have.
func noteName(container, name string) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	isPlain := strings.Trim(container, letters) == "" && strings.Trim(name, letters+"._-") == ""
	if isPlain && len(container)+len(name) <= 160 {
		return container + "-" + name + ".json"
	}
	sum := sha256.Sum256([]byte(container + "/" + name))
	return hex.EncodeToString(sum[:16]) + ".json"
}

func fail(asked request, code int, msg, details string) {
	var config struct{ CNIVersion string }
	if json.Unmarshal([]byte(asked.Config), &config) != nil || config.CNIVersion == "" {
		config.CNIVersion = "1.1.0"
	}
	finish(string(encode(cniError{config.CNIVersion, code, msg, details})), 1)
}

// finish never returns.
func finish(output string, exit int) {
	if _, err := os.Stdout.WriteString(output); err != nil {
		exit = 1
	}
	os.Exit(exit)
}

// encode gives one line.
func encode(value any) []byte {
	text, _ := json.Marshal(value) // texts and numbers only: it cannot fail
	return append(text, '\n')
}
