// Command caller runs CNI plugins in parallel, as container runtimes do, and reports how long each call took. It is a Go program
// because starting processes is much cheaper for it than for Node.js.
//
//	caller [-serial] PLUGIN
//
// A call is a line of JSON on standard input. Its outcome is a line on standard output, in the order in which the calls end.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"log"
	"os"
	"os/exec"
	"sync"
	"time"
)

type call struct {
	ID     int      `json:"id"`
	Env    []string `json:"env"`
	Config string   `json:"config"`
}

type outcome struct {
	ID     int    `json:"id"`
	Exit   int    `json:"exit"`
	Output string `json:"output"`
	// From before the process starts until its end is known.
	Ms float64 `json:"ms"`
	// User and system time of the process.
	CPUMs float64 `json:"cpuMs"`
}

func main() {
	log.SetFlags(0)
	serial := flag.Bool("serial", false, "run one call after the other")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: caller [-serial] PLUGIN")
	}
	var running sync.WaitGroup
	calls, outcomes := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var writing sync.Mutex
	for {
		var next call
		if err := calls.Decode(&next); err == io.EOF {
			running.Wait()
			return
		} else if err != nil {
			log.Fatal(err)
		}
		running.Add(1)
		go func() {
			defer running.Done()
			done := run(flag.Arg(0), next)
			writing.Lock()
			defer writing.Unlock()
			if err := outcomes.Encode(done); err != nil {
				log.Fatal(err)
			}
		}()
		if *serial {
			running.Wait()
		}
	}
}

func run(plugin string, asked call) outcome {
	var output bytes.Buffer
	began := time.Now()
	command := exec.Command(plugin)
	command.Env = asked.Env
	command.Stdin = bytes.NewReader([]byte(asked.Config))
	command.Stdout = &output
	command.Stderr = os.Stderr
	err := command.Run()
	ms := milliseconds(time.Since(began))
	state := command.ProcessState
	if state == nil {
		log.Fatal(err)
	}
	return outcome{asked.ID, state.ExitCode(), output.String(), ms, milliseconds(state.UserTime() + state.SystemTime())}
}

func milliseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond)
}
