// Drives sarama: BOOTSTRAP GROUP TOPIC NAME=VALUE...; what is read from standard input and printed
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

	"github.com/IBM/sarama"
)

var lacks = map[string]string{
	"cooperative":          "it has no cooperative assignor",
	"mixed":                "it has no cooperative assignor",
	"lost":                 "its handlers have no method for it",
	"max.poll.interval.ms": "it has no such setting: a member may poll as seldom as it likes",
	"assign":               "its offset manager for that is another program than its consumer group",
}

var printing sync.Mutex

func say(event string, facts map[string]any) {
	printing.Lock()
	defer printing.Unlock()
	facts["event"], facts["at_ms"] = event, float64(time.Now().UnixMicro())/1000
	line, _ := json.Marshal(facts)
	fmt.Println(string(line))
}

func fail(err error) {
	say("error", map[string]any{"message": err.Error()})
}

func version() string {
	built, _ := debug.ReadBuildInfo()
	for _, each := range built.Deps {
		if each.Path == "github.com/IBM/sarama" {
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

func settings(given map[string]string) *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.MaxVersion
	made.Consumer.Return.Errors = true
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Offsets.AutoCommit.Enable = given["enable.auto.commit"] == "true"
	if interval, is := given["auto.commit.interval.ms"]; is {
		made.Consumer.Offsets.AutoCommit.Interval = millis(interval)
	}
	made.Consumer.Group.Session.Timeout = millis(given["session.timeout.ms"])
	made.Consumer.Group.Heartbeat.Interval = millis(given["heartbeat.interval.ms"])
	made.Consumer.Group.Rebalance.Timeout = millis(given["max.poll.interval.ms"])
	made.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
		sarama.NewBalanceStrategyRange(),
	}
	made.Consumer.Group.Rebalance.Retry.Backoff = millis(given["retry.backoff.ms"])
	made.Consumer.Group.InstanceId = given["group.instance.id"]
	made.Consumer.Retry.Backoff = millis(given["retry.backoff.ms"])
	made.Metadata.Retry.Backoff = millis(given["retry.backoff.ms"])
	made.Metadata.RefreshFrequency = millis(given["metadata.max.age.ms"])
	if timeout, is := given["request.timeout.ms"]; is {
		made.Net.ReadTimeout = millis(timeout)
	}
	return made
}

type handler struct {
	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
}

func told(event string, session sarama.ConsumerGroupSession) {
	names := []string{}
	for topic, partitions := range session.Claims() {
		for _, partition := range partitions {
			names = append(names, fmt.Sprintf("%s-%d", topic, partition))
		}
	}
	say(event, map[string]any{"partitions": names})
}

func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.session = session
	told("assigned", session)
	return nil
}

func (h *handler) Cleanup(session sarama.ConsumerGroupSession) error {
	told("revoked", session)
	return nil
}

func (h *handler) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for range claim.Messages() {
	}
	return nil
}

// Commit what the present session owns; what goes wrong comes out of the group's errors.
func (h *handler) commit() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.session == nil {
		fail(errors.New("no session"))
		return
	}
	for topic, partitions := range h.session.Claims() {
		for _, partition := range partitions {
			h.session.MarkOffset(topic, partition, 1, "")
		}
	}
	h.session.Commit()
	say("committed", map[string]any{})
}

type member struct {
	group   sarama.ConsumerGroup
	handler handler
	mutex   sync.Mutex
	topic   string
	cancel  context.CancelFunc
}

// Consume session after session, until the group is closed or refuses for good.
func (m *member) run() {
	for {
		m.mutex.Lock()
		ctx, cancel := context.WithCancel(context.Background())
		m.cancel = cancel
		topic := m.topic
		m.mutex.Unlock()
		if err := m.group.Consume(ctx, []string{topic}, &m.handler); err != nil {
			if !errors.Is(err, sarama.ErrClosedConsumerGroup) {
				fail(err)
			}
			return
		}
	}
}

func (m *member) act(command string) {
	word, rest, _ := strings.Cut(command, " ")
	switch word {
	case "commit":
		m.handler.commit()
	case "subscribe":
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.topic = rest
		m.cancel()
	case "close":
		if err := m.group.Close(); err != nil {
			fail(err)
		}
		say("closed", map[string]any{})
		os.Exit(0)
	}
}

func main() {
	say("hello", map[string]any{"client": "sarama", "version": version(), "lacks": lacks})
	given := map[string]string{}
	for _, each := range os.Args[4:] {
		name, value, _ := strings.Cut(each, "=")
		given[name] = value
	}
	group, err := sarama.NewConsumerGroup(strings.Split(os.Args[1], ","), os.Args[2], settings(given))
	if err != nil {
		fail(err)
		os.Exit(1)
	}
	one := &member{group: group, topic: os.Args[3]}
	go func() {
		for err := range group.Errors() {
			fail(err)
		}
	}()
	go one.run()
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		one.act(commands.Text())
	}
	one.act("close")
}
