import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.util.Collector;

/**
 * Runs one pattern of Flink CEP over rows of roads: preloaded objects, event time, parallelism 1, all matches counted.
 *
 * <p>Arguments: the rows (.csv with id, time, velocity, quantity), the pattern, whether by key, the window in
 * milliseconds, the part of the rows that each step takes in percent, how many runs. Prints a line "seconds matches" for each run; the clock begins with the first row and
 * ends with the job.
 */
public final class FlinkRoads {
  private static final List<Row> ROWS = new ArrayList<>();
  private static final AtomicLong MATCHES = new AtomicLong();
  private static volatile long begin;

  public static final class Row {
    public int id;
    public long time;
    public double velocity;
    public double quantity;
  }

  /** Slow, full or free roads: the lowest and highest values, `part` percent of the rows each. */
  private static final class Is extends SimpleCondition<Row> {
    private final String steps;
    private final double part;

    Is(String steps, double part) {
      this.steps = steps;
      this.part = part;
    }

    @Override
    public boolean filter(Row row) {
      return switch (steps) {
        case "slow" -> row.velocity < part;
        case "full" -> row.quantity > 100 - part && row.velocity >= part;
        case "free" -> row.velocity > 100 - part;
        default -> row.velocity < part || row.quantity > 100 - part;
      };
    }
  }

  private static final class Rows implements SourceFunction<Row> {
    @Override
    public void run(SourceContext<Row> context) {
      begin = System.nanoTime();
      int sent = 0;
      for (Row row : ROWS) {
        context.collectWithTimestamp(row, row.time);
        if (++sent % 2500 == 0) {
          context.emitWatermark(new Watermark(row.time));
        }
      }
    }

    @Override
    public void cancel() {}
  }

  private static final class Count extends PatternProcessFunction<Row, Long> {
    @Override
    public void processMatch(Map<String, List<Row>> match, Context context, Collector<Long> out) {
      MATCHES.incrementAndGet();
    }
  }

  private static final class Key implements KeySelector<Row, Integer> {
    private final boolean byId;

    Key(boolean byId) {
      this.byId = byId;
    }

    @Override
    public Integer getKey(Row row) {
      return byId ? row.id : 0;
    }
  }

  private static List<Pattern<Row, Row>> patterns(String name, double part) {
    Is slow = new Is("slow", part);
    Is full = new Is("full", part);
    return switch (name) {
      case "SEQ" -> List.of(begin(slow).followedByAny("b").where(full));
      case "AND" -> List.of(begin(slow).followedByAny("b").where(full), begin(full).followedByAny("b").where(slow));
      case "OR" -> List.of(begin(new Is("either", part)));
      case "NOT" ->
          List.of(begin(slow).notFollowedBy("n").where(new Is("free", part / 50)).followedByAny("b").where(full));
      case "ITER" -> List.of(begin(slow).times(3).allowCombinations());
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static Pattern<Row, Row> begin(Is condition) {
    return Pattern.<Row>begin("a").where(condition);
  }

  public static void main(String[] arguments) throws Exception {
    load(arguments[0]);
    for (int run = 0; run < Integer.parseInt(arguments[5]); run++) {
      MATCHES.set(0);
      StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
      job.setParallelism(1);
      job.getConfig().enableObjectReuse();
      DataStream<Row> rows = job.addSource(new Rows(), "rows")
          .returns(Row.class)
          .keyBy(new Key(Boolean.parseBoolean(arguments[2])));
      for (Pattern<Row, Row> pattern : patterns(arguments[1], Double.parseDouble(arguments[4]))) {
        Pattern<Row, Row> bounded = pattern.within(Duration.ofMillis(Long.parseLong(arguments[3])));
        CEP.pattern(rows, bounded).inEventTime().process(new Count()).sinkTo(new DiscardingSink<>());
      }
      job.execute();
      System.out.println((System.nanoTime() - begin) / 1e9 + " " + MATCHES.get());
    }
  }

  private static void load(String path) throws Exception {
    try (BufferedReader in = Files.newBufferedReader(Path.of(path))) {
      in.readLine();
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        String[] fields = line.split(",");
        Row row = new Row();
        row.id = Integer.parseInt(fields[0]);
        row.time = Long.parseLong(fields[1]);
        row.velocity = Double.parseDouble(fields[2]);
        row.quantity = Double.parseDouble(fields[3]);
        ROWS.add(row);
      }
    }
  }
}
