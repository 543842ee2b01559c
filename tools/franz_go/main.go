// A consumer on franz-go that does what standard input says, for recordings.
//
//	franz_go BOOTSTRAP GROUP TOPIC KEY=VALUE...
//
// Commands, one a line: "slow MS" sleeps that long between two polls, "close" closes and ends.
// Every rebalance callback and every record is one line on standard output.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const pollTime = 100 * time.Millisecond

func teller(what string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		said := what
		for _, ofTopic := range partitions {
			for _, partition := range ofTopic {
				said += fmt.Sprintf(" %d", partition)
			}
		}
		fmt.Println(said)
	}
}

func option(key, value string) kgo.Opt {
	ms, _ := strconv.Atoi(value)
	duration := time.Duration(ms) * time.Millisecond
	switch key {
	case "client.id":
		return kgo.ClientID(value)
	case "group.instance.id":
		return kgo.InstanceID(value)
	case "session.timeout.ms":
		return kgo.SessionTimeout(duration)
	case "heartbeat.interval.ms":
		return kgo.HeartbeatInterval(duration)
	case "max.poll.interval.ms":
		return kgo.RebalanceTimeout(duration)
	case "partition.assignment.strategy":
		if value == "range" {
			return kgo.Balancers(kgo.RangeBalancer())
		}
		return kgo.Balancers(kgo.CooperativeStickyBalancer())
	}
	panic("unknown setting " + key)
}

func main() {
	options := []kgo.Opt{
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumerGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3]),
		// No OnPartitionsRevoked: the client's own, which commits, would be gone.
		kgo.OnPartitionsAssigned(teller("assigned")),
		kgo.OnPartitionsLost(teller("lost")),
	}
	for _, setting := range os.Args[4:] {
		key, value, _ := strings.Cut(setting, "=")
		options = append(options, option(key, value))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	fmt.Println("subscribe")
	commands := make(chan string, 16)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	for {
		limited, cancel := context.WithTimeout(context.Background(), pollTime)
		fetches := client.PollFetches(limited)
		cancel()
		if err := fetches.Err0(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			fmt.Println("error", err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println("position", record.Partition, record.Offset+1)
		})
		select {
		case command := <-commands:
			if command == "close" {
				fmt.Println("closing")
				client.Close()
				fmt.Println("closed")
				return
			}
			ms, _ := strconv.Atoi(strings.TrimPrefix(command, "slow "))
			fmt.Println("busy")
			time.Sleep(time.Duration(ms) * time.Millisecond)
			fmt.Println("polling")
		default:
		}
	}
}
