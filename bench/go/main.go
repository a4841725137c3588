// SPDX-License-Identifier: Apache-2.0 OR MIT

// The measurements of c/stream.c with goroutines: `switch N` switches between two on one processor, `create N`
// starts and ends N one after the other, `trip PROCESSORS N` makes N round trips over two channels,
// `goroutines N` measures the memory of N waiting ones.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func resident() int {
	var all, own int
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	fmt.Fscan(f, &all, &own)
	f.Close()
	return own * os.Getpagesize()
}

func number(i int) int {
	if i < len(os.Args) {
		if n, err := strconv.Atoi(os.Args[i]); err == nil {
			return n
		}
	}
	fmt.Fprintln(os.Stderr, "usage: goroutines switch N | create N | trip PROCESSORS N | goroutines N")
	os.Exit(2)
	return 0
}

func expect(what string, got, expected int) {
	if got != expected {
		fmt.Fprintf(os.Stderr, "wrong result: %s is %d, not %d\n", what, got, expected)
		os.Exit(1)
	}
}

func say(took time.Duration, n int) { fmt.Printf("ns %g\n", float64(took.Nanoseconds())/float64(n)) }

func main() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	n := number(2)
	runtime.GOMAXPROCS(1)
	switch mode {
	case "switch":
		done := make(chan bool)
		turns := 0
		body := func() {
			for i := 0; i < n/2; i++ {
				turns++
				runtime.Gosched()
			}
			done <- true
		}
		from := cpu()
		go body()
		go body()
		<-done
		<-done
		say(cpu()-from, n)
		expect("the number of turns", turns, n/2*2)
	case "create":
		ended := 0
		from := cpu()
		for i := 0; i < n; i++ {
			go func() { ended++ }()
			runtime.Gosched()
		}
		for ended < n {
			runtime.Gosched()
		}
		say(cpu()-from, n)
	case "trip":
		apart := n > 1
		runtime.GOMAXPROCS(n)
		n = number(3)
		if apart { // else the scheduler keeps the two on one processor
			runtime.LockOSThread()
		}
		there, back := make(chan int), make(chan int)
		go func() {
			if apart {
				runtime.LockOSThread()
			}
			for x := range there {
				back <- x + 1
			}
		}()
		from := time.Now()
		for i := 0; i < n; i++ {
			there <- i
			expect("the answer", <-back, i+1)
		}
		say(time.Since(from), n)
		close(there)
	case "goroutines":
		begun, end := make(chan bool), make(chan bool)
		before := resident()
		for i := 0; i < n; i++ {
			go func() {
				begun <- true
				<-end
			}()
		}
		for i := 0; i < n; i++ {
			<-begun
		}
		whole := resident()
		fmt.Printf("bytes_each %g\nmib %g\n", float64(whole-before)/float64(n), float64(whole)/1048576)
		close(end)
	}
}
