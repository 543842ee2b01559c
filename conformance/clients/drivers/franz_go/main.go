// Drives franz-go: BOOTSTRAP GROUP TOPIC NAME=VALUE...; what is read from standard input and printed
// is told in clients/driver.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const poll = 50 * time.Millisecond

var lacks = map[string]string{
	"max.poll.interval.ms": "it has no such setting: a member may poll as seldom as it likes",
	"assign":               "without a group's assignment it commits nothing",
}

var printing sync.Mutex

func say(event string, facts map[string]any) {
	printing.Lock()
	defer printing.Unlock()
	facts["event"], facts["at_ms"] = event, float64(time.Now().UnixMicro())/1000
	line, _ := json.Marshal(facts)
	fmt.Println(string(line))
}

type ownership struct {
	mutex  sync.Mutex
	topics map[string]map[int32]bool
}

var owned = ownership{topics: map[string]map[int32]bool{}}

func (o *ownership) change(places map[string][]int32, gained bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for topic, partitions := range places {
		if o.topics[topic] == nil {
			o.topics[topic] = map[int32]bool{}
		}
		for _, partition := range partitions {
			if gained {
				o.topics[topic][partition] = true
			} else {
				delete(o.topics[topic], partition)
			}
		}
	}
}

func (o *ownership) offsets(otherwise string) map[string]map[int32]kgo.EpochOffset {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	offset := kgo.EpochOffset{Epoch: -1, Offset: 1}
	found := map[string]map[int32]kgo.EpochOffset{}
	for topic, partitions := range o.topics {
		for partition := range partitions {
			if found[topic] == nil {
				found[topic] = map[int32]kgo.EpochOffset{}
			}
			found[topic][partition] = offset
		}
	}
	if len(found) == 0 {
		found[otherwise] = map[int32]kgo.EpochOffset{0: offset}
	}
	return found
}

func told(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, places map[string][]int32) {
		owned.change(places, event == "assigned")
		names := []string{}
		for topic, partitions := range places {
			for _, partition := range partitions {
				names = append(names, fmt.Sprintf("%s-%d", topic, partition))
			}
		}
		say(event, map[string]any{"partitions": names})
	}
}

func version() string {
	built, _ := debug.ReadBuildInfo()
	for _, each := range built.Deps {
		if each.Path == "github.com/twmb/franz-go" {
			return strings.TrimPrefix(each.Version, "v")
		}
	}
	return ""
}

func millis(text string) time.Duration {
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

func options(group, topic string, given map[string]string) []kgo.Opt {
	balancers := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	var wanted []kgo.GroupBalancer
	for _, name := range strings.Split(given["partition.assignment.strategy"], ",") {
		wanted = append(wanted, balancers[name])
	}
	backoff := millis(given["retry.backoff.ms"])
	made := []kgo.Opt{
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.Balancers(wanted...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(millis(given["heartbeat.interval.ms"])),
		kgo.SessionTimeout(millis(given["session.timeout.ms"])),
		kgo.RebalanceTimeout(millis(given["max.poll.interval.ms"])),
		kgo.MetadataMaxAge(millis(given["metadata.max.age.ms"])),
		kgo.MetadataMinAge(min(time.Second, millis(given["metadata.max.age.ms"]))),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(backoff<<(tries-1), time.Second)
		}),
		kgo.OnPartitionsAssigned(told("assigned")),
		kgo.OnPartitionsRevoked(told("revoked")),
		kgo.OnPartitionsLost(told("lost")),
	}
	if given["enable.auto.commit"] != "true" {
		made = append(made, kgo.DisableAutoCommit())
	} else if interval, is := given["auto.commit.interval.ms"]; is {
		made = append(made, kgo.AutoCommitInterval(millis(interval)))
	}
	if timeout, is := given["request.timeout.ms"]; is {
		made = append(made, kgo.RequestTimeoutOverhead(millis(timeout)))
	}
	if instance, is := given["group.instance.id"]; is {
		made = append(made, kgo.InstanceID(instance))
	}
	return made
}

func commit(client *kgo.Client, topic string) error {
	var failed error
	client.CommitOffsetsSync(context.Background(), owned.offsets(topic),
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			failed = err
			if answer == nil {
				return
			}
			for _, topic := range answer.Topics {
				for _, partition := range topic.Partitions {
					failed = errors.Join(failed, kerr.ErrorForCode(partition.ErrorCode))
				}
			}
		})
	return failed
}

func act(client *kgo.Client, topic, command string) {
	word, rest, _ := strings.Cut(command, " ")
	switch word {
	case "commit":
		if err := commit(client, topic); err != nil {
			fail(err)
			return
		}
		say("committed", map[string]any{})
	case "subscribe":
		client.AddConsumeTopics(rest)
		client.PurgeTopicsFromConsuming(topic)
	case "close":
		client.Close()
		say("closed", map[string]any{})
		os.Exit(0)
	}
}

func fail(err error) {
	say("error", map[string]any{"message": err.Error()})
}

func main() {
	say("hello", map[string]any{"client": "franz-go", "version": version(), "lacks": lacks})
	given := map[string]string{}
	for _, each := range os.Args[4:] {
		name, value, _ := strings.Cut(each, "=")
		given[name] = value
	}
	topic := os.Args[3]
	client, err := kgo.NewClient(append(options(os.Args[2], topic, given),
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...))...)
	if err != nil {
		panic(err)
	}
	go func() {
		commands := bufio.NewScanner(os.Stdin)
		for commands.Scan() {
			act(client, topic, commands.Text())
		}
		act(client, topic, "close")
	}()
	for {
		waiting, cancel := context.WithTimeout(context.Background(), poll)
		client.PollFetches(waiting).EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, kgo.ErrClientClosed) {
				fail(err)
			}
		})
		cancel()
	}
}
