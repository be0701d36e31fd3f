import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;

/**
 * Runs one EPL statement over the stock trace: preloaded objects, external time, one thread.
 *
 * <p>Arguments: the trace (.csv.gz), the statement, how many runs. Prints a line "seconds matches" for each run.
 */
public final class EsperTrades {
  public abstract static class Trade {
    private final String name;
    private final double price;
    private final long time;

    Trade(String name, double price, long time) {
      this.name = name;
      this.price = price;
      this.time = time;
    }

    public String getName() {
      return name;
    }

    public double getPrice() {
      return price;
    }

    public long getTime() {
      return time;
    }
  }

  public static final class Buy extends Trade {
    Buy(String name, double price, long time) {
      super(name, price, time);
    }
  }

  public static final class Sell extends Trade {
    Sell(String name, double price, long time) {
      super(name, price, time);
    }
  }

  public static void main(String[] args) throws Exception {
    List<Trade> trades = load(args[0]);
    Configuration configuration = new Configuration();
    configuration.getCommon().addEventType(Buy.class);
    configuration.getCommon().addEventType(Sell.class);
    configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
    EPCompiled statement = EPCompilerProvider.getCompiler().compile(args[1], new CompilerArguments(configuration));
    for (int run = 0; run < Integer.parseInt(args[2]); run++) {
      EPRuntime runtime = EPRuntimeProvider.getRuntime("run " + run, configuration);
      EPEventService events = runtime.getEventService();
      events.clockExternal();
      events.advanceTime(0);
      long[] matches = {0};
      runtime.getDeploymentService().deploy(statement).getStatements()[0]
          .addListener((found, gone, source, of) -> matches[0] += found.length);
      long begin = System.nanoTime();
      for (Trade trade : trades) {
        events.advanceTime(trade.time);
        events.sendEventBean(trade, trade instanceof Buy ? "Buy" : "Sell");
      }
      System.out.println((System.nanoTime() - begin) / 1e9 + " " + matches[0]);
      runtime.destroy();
    }
  }

  private static List<Trade> load(String path) throws Exception {
    List<Trade> trades = new ArrayList<>();
    try (BufferedReader in =
        new BufferedReader(new InputStreamReader(new GZIPInputStream(new FileInputStream(path))))) {
      in.readLine();
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        String[] fields = line.split(",");
        long time = Long.parseLong(fields[5]);
        double price = Double.parseDouble(fields[4]);
        trades.add(fields[0].equals("BUY") ? new Buy(fields[2], price, time) : new Sell(fields[2], price, time));
      }
    }
    return trades;
  }
}
