// Command flood measures what passes between two network namespaces.
//
//	flood receive ADDRESS   counts UDP packets of 18 bytes until none arrives for a second, and prints packets a second
//	flood packets ADDRESS   sends such packets for a second, and prints how many it sends in a second of CPU time
//	flood accept ADDRESS    reads one TCP connection to its end, and prints bytes a second
//	flood bytes ADDRESS     sends by TCP for a second, and prints how much it sends in a second of CPU time
package main

import (
	"fmt"
	"log"
	"net"
	"os"
	"syscall"
	"time"
)

const sendFor = time.Second

var buffer = make([]byte, 1<<18)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: flood receive|packets|accept|bytes ADDRESS")
	}
	work := map[string]func(string) error{"receive": receive, "packets": packets, "accept": accept, "bytes": bytes}[os.Args[1]]
	if work == nil {
		log.Fatal("unknown command ", os.Args[1])
	}
	if err := work(os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func receive(address string) error {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "ready")
	wait := 30 * time.Second // until the sender begins
	var first, last time.Time
	for count := 0; ; count++ {
		if count%256 == 0 {
			conn.SetReadDeadline(time.Now().Add(wait))
		}
		if _, _, err := conn.ReadFrom(buffer); err != nil {
			fmt.Printf("%.0f\n", float64(count)/last.Sub(first).Seconds())
			return nil
		}
		last, wait = time.Now(), time.Second
		if count == 0 {
			first = last
		}
	}
}

func packets(address string) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	sent := 0
	for began := time.Now(); time.Since(began) < sendFor; {
		for range 32 {
			conn.Write(buffer[:18]) // a full queue is no error here
			sent++
		}
	}
	return printPerCPU(sent)
}

func accept(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "ready")
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	began, total := time.Now(), 0
	for {
		size, err := conn.Read(buffer)
		total += size
		if err != nil {
			fmt.Printf("%.0f\n", float64(total)/time.Since(began).Seconds())
			return nil
		}
	}
}

func bytes(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	sent := 0
	for began := time.Now(); time.Since(began) < sendFor; {
		size, err := conn.Write(buffer)
		sent += size
		if err != nil {
			return err
		}
	}
	return printPerCPU(sent)
}

// printPerCPU relates what was sent to the CPU time of this process, in which the kernel also filters. Unlike the rate, it hardly
// depends on what else runs.
func printPerCPU(sent int) error {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	fmt.Printf("%.0f\n", float64(sent)/(time.Duration(usage.Utime.Nano()+usage.Stime.Nano()).Seconds()))
	return nil
}
