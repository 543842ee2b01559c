import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.TreeSet;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Prints every node below /consumers that has data: its path, a tab, its data. The argument is the address of a ZooKeeper. */
public final class OffsetNodes {
    private OffsetNodes() { }

    public static void main(String[] args) throws Exception {
        ZooKeeper client = new ZooKeeper(args[0], 10_000, event -> { });
        print(client, "/consumers");
        client.close();
    }

    private static void print(ZooKeeper client, String path) throws Exception {
        byte[] data = client.getData(path, false, new Stat());
        if (data != null && data.length > 0) System.out.println(path + "\t" + new String(data, StandardCharsets.UTF_8));
        List<String> children = client.getChildren(path, false);
        for (String child : new TreeSet<>(children)) print(client, path + "/" + child);
    }
}
