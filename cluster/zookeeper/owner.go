package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/moby/moby/client"
	"go.uber.org/zap"
)

// The labels of our containers and networks. A pid alone names nobody for long:
// with the time at which its process started and the boot that it belongs to
// it does, on one machine.
const (
	labelKind  = "dev.fencepost.kind" // zookeeper
	labelPID   = "dev.fencepost.owner.pid"
	labelStart = "dev.fencepost.owner.start"
	labelBoot  = "dev.fencepost.owner.boot"
	labelHost  = "dev.fencepost.owner.host"
)

const kindZooKeeper = "zookeeper"

// owner names a process, for as long as anybody asks.
type owner struct {
	pid   int
	start string // when it started, in the system's own words
	boot  string // the boot of the machine that it runs on
	host  string // the machine, or the container, whose pids these are
}

// self is this process.
func self() owner {
	pid := os.Getpid()
	start, _ := processStart(pid)
	return owner{pid: pid, start: start, boot: bootID(), host: hostID()}
}

func (o owner) labels() map[string]string {
	if o.pid == 0 {
		return map[string]string{labelKind: kindZooKeeper}
	}
	return map[string]string{
		labelKind: kindZooKeeper, labelPID: strconv.Itoa(o.pid), labelStart: o.start, labelBoot: o.boot, labelHost: o.host,
	}
}

// ownerOf reads the labels; false if they are not ours, or not complete.
func ownerOf(labels map[string]string) (owner, bool) {
	pid, err := strconv.Atoi(labels[labelPID])
	o := owner{pid: pid, start: labels[labelStart], boot: labels[labelBoot], host: labels[labelHost]}
	ours := err == nil && pid > 0 && labels[labelKind] == kindZooKeeper && o.start != "" && o.boot != "" && o.host != ""
	return o, ours
}

// dead reports whether the owner is certainly gone. Of a process on another
// machine, or behind another pid namespace, nothing is certain.
func (o owner) dead() bool {
	if o.host != hostID() {
		return false
	}
	if o.boot != bootID() {
		return true
	}
	start, running := processStart(o.pid)
	return !running || start != o.start
}

// removeStale removes the containers and networks of ours whose owner is dead,
// and only those: a neighbour's run on the same machine goes on.
func removeStale(ctx context.Context, docker client.APIClient, log *zap.Logger) error {
	ours := make(client.Filters).Add("label", labelKind+"="+kindZooKeeper)
	containers, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	var errs []error
	for _, c := range containers.Items {
		o, ok := ownerOf(c.Labels)
		if !ok || !o.dead() {
			continue
		}
		log.Info("removing a container whose run is gone", zap.String("container", c.ID), zap.Int("pid", o.pid))
		_, err := docker.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("remove container %s: %w", c.ID, err))
		}
	}
	networks, err := docker.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("list networks: %w", err))...)
	}
	for _, n := range networks.Items {
		if o, ok := ownerOf(n.Labels); !ok || !o.dead() {
			continue
		}
		if _, err := docker.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{}); err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("remove network %s: %w", n.ID, err))
		}
	}
	return errors.Join(errs...)
}
