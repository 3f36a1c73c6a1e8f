package zookeeper

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// processStart is the time at which a process started, in ticks since the boot,
// and whether it runs. A zombie does not.
func processStart(pid int) (start string, running bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The name, in brackets, may hold anything; the fields follow the last one.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const state, starttime = 0, 19 // fields 3 and 22 of proc(5)
	if len(fields) <= starttime {
		return "", false
	}
	return fields[starttime], fields[state] != "Z" && fields[state] != "X"
}

// bootID names the boot of this machine.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id))
}

// hostID names the machine and the namespace of its pids.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		pids = "unknown"
	}
	return name + "/" + pids
}
