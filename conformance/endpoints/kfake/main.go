// Command kfake serves franz-go's fake cluster, one broker, until it is killed.
//
// Each argument is a broker setting, KEY=VALUE.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	settings := map[string]string{}
	for _, argument := range os.Args[1:] {
		key, value, found := strings.Cut(argument, "=")
		if !found {
			log.Fatalf("%s: wants KEY=VALUE", argument)
		}
		settings[key] = value
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(0),
		kfake.BrokerConfigs(settings),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	select {}
}
