//go:build !linux

package zookeeper

import (
	"math"
	"os"
	"strconv"

	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/process"
)

// processStart is the time at which a process started, in milliseconds since
// 1970, and whether it runs.
func processStart(pid int) (start string, running bool) {
	if pid < 0 || pid > math.MaxInt32 {
		return "", false
	}
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return "", false
	}
	created, err := p.CreateTime()
	if err != nil {
		return "", false
	}
	return strconv.FormatInt(created, 10), true
}

// bootID is the time of the boot, to the minute: clocks are set now and then.
func bootID() string {
	boot, err := host.BootTime()
	if err != nil {
		return "unknown"
	}
	return strconv.FormatUint(boot/60, 10)
}

// hostID names the machine.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
