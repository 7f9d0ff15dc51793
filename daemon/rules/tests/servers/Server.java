// Reports which ways to read a request's path lead to /login. Prints its port; ends with its input.
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

public class Server {
    static class Reply extends HttpServlet {
        private final String body;

        Reply(String body) {
            this.body = body;
        }

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.getWriter().print(body);
        }
    }

    public static void main(String[] arguments) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
        tomcat.setPort(0);
        Connector connector = tomcat.getConnector();
        // The most permissive settings.
        connector.setEncodedSolidusHandling(arguments[0]);
        connector.setAllowBackslash(true);
        connector.setProperty("relaxedPathChars", "\\|{}[]^`<>\"");
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "login", new Reply("servlet"));
        Tomcat.addServlet(context, "other", new Reply(""));
        context.addServletMappingDecoded("/login", "login");
        context.addServletMappingDecoded("/login/", "login");
        context.addServletMappingDecoded("/", "other");
        tomcat.start();
        System.out.println(connector.getLocalPort());
        System.in.readAllBytes();
        System.exit(0);
    }
}
